package config

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture"
)

// Origin is one setting with where its value comes from.
type Origin struct {
	Key   string `json:"key"`
	Value string `json:"value"` // references as they stand, passwords in addresses hidden
	From  string `json:"from"`
}

// Origins lists every setting in force and where it comes from: default, a file and its line, an environment variable or a flag.
func (s *Sources) Origins() ([]Origin, error) {
	lookup := s.Environment
	if lookup == nil {
		lookup = os.LookupEnv
	}
	c := Default()
	found, err := s.merged(c)
	if err == nil {
		err = c.applyEnvironment(lookup)
	}
	if err == nil {
		err = s.applyFlags(c)
	}
	if err != nil {
		return nil, UsageError{err}
	}
	flags := pflag.NewFlagSet("origins", pflag.ContinueOnError)
	Flags(c, flags, Everything())
	var all []Origin
	for _, setting := range settings(c) {
		all = append(all, Origin{setting.key, capture.Redact(flags.Lookup(setting.flag).Value.String()), s.origin(&setting, found, lookup)})
	}
	for i := range c.Cameras {
		from := "--camera"
		if len(s.Cameras) == 0 {
			from = found.from(fmt.Sprintf("cameras[%d]", i), cameraVariable)
		}
		all = append(all, Origin{"cameras." + c.Cameras[i].Name, capture.Redact(c.Cameras[i].URI), from})
	}
	for i := range c.Cascade {
		from := "--cascade"
		if len(s.Cascade) == 0 {
			from = found.from(fmt.Sprintf("cascade[%d]", i), "default")
		}
		all = append(all, Origin{"cascade." + c.Cascade[i].Name, c.Cascade[i].Model, from})
	}
	return all, nil
}

// origin is the last of the sources that say something of a setting.
func (s *Sources) origin(of *setting, found places, lookup func(string) (string, bool)) string {
	if s.given != nil {
		if flag := s.given.Lookup(of.flag); flag != nil && flag.Changed {
			return "--" + of.flag
		}
	}
	for _, flag := range []string{of.flag, of.former()} {
		if _, set := lookup(variable(flag)); set && flag != "" {
			return variable(flag)
		}
	}
	return found.from(of.key, "default")
}

// from says where a key stands, or otherwise what it comes from.
func (p places) from(key, otherwise string) string {
	if at, known := p[key]; known {
		return fmt.Sprintf("%s line %d", at.path, at.line)
	}
	return otherwise
}
