package config

import (
	"os"

	"github.com/spf13/pflag"
)

// Sources are where a command's settings come from: the built-in values, File, the environment, and what was given on the command line; a
// later one wins. Loading again reads file and environment again.
type Sources struct {
	File    string   // YAML, with those of conf.d beside it, see Files; empty for none
	Cameras []string // of --camera, see ParseCameras
	Cascade []string // of --cascade, see ParseCascades
	Scope   Scope
	// Environment looks a variable up; nil is the process' own.
	Environment func(name string) (value string, set bool)

	given *pflag.FlagSet
}

// Flags gives the settings of the scope, and the configuration file, their flags. What is given to them counts when the settings are
// loaded.
func (s *Sources) Flags(flags *pflag.FlagSet) {
	Flags(Default(), flags, s.Scope) // gives them their help; the values are read again after the file
	flags.StringVar(&s.File, "config", "", "YAML file, and *.yaml of conf.d beside it; edge-infer config defaults prints one")
	s.given = flags
}

// CameraFlag gives cameras their flag.
func (s *Sources) CameraFlag(flags *pflag.FlagSet, help string) {
	flags.StringArrayVar(&s.Cameras, "camera", nil, help)
}

// CascadeFlag gives second networks their flag.
func (s *Sources) CascadeFlag(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.Cascade, "cascade", nil,
		"classifier that looks at each object, NAME=MODEL.onnx; may be given several times, and more is set under cascade: of --config")
}

// Load reads the settings and checks those of the scope. An error is a UsageError.
func (s *Sources) Load() (*Config, error) {
	c, err := s.read()
	if err == nil {
		err = c.Validate(s.Scope)
	}
	if err != nil {
		return nil, UsageError{err}
	}
	return c, nil
}

// read puts the sources over each other, and what was drawn on the page over them.
func (s *Sources) read() (*Config, error) {
	c, err := s.configured()
	if err == nil {
		err = c.applyDrawn()
	}
	return c, err
}

// configured puts the sources over each other.
func (s *Sources) configured() (*Config, error) {
	c := Default()
	lookup := s.Environment
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if _, err := s.files(c, lookup); err != nil {
		return nil, err
	}
	if err := c.applyEnvironment(lookup); err != nil {
		return nil, err
	}
	if err := s.applyFlags(c); err != nil {
		return nil, err
	}
	c.applyService(lookup)
	return c, nil
}

// applyFlags sets what was given on the command line.
func (s *Sources) applyFlags(c *Config) (err error) {
	if len(s.Cameras) > 0 {
		if c.Cameras, err = ParseCameras(s.Cameras); err != nil {
			return err
		}
	}
	if len(s.Cascade) > 0 {
		if c.Cascade, err = ParseCascades(s.Cascade); err != nil {
			return err
		}
	}
	if s.given == nil {
		return nil
	}
	overlay := pflag.NewFlagSet("given", pflag.ContinueOnError)
	Flags(c, overlay, s.Scope)
	s.given.VisitAll(func(flag *pflag.Flag) { // Changed is the flag's, not of the set that it was parsed in
		if !flag.Changed || overlay.Lookup(flag.Name) == nil || err != nil {
			return
		}
		if values, ok := flag.Value.(pflag.SliceValue); ok {
			err = overlay.Lookup(flag.Name).Value.(pflag.SliceValue).Replace(values.GetSlice())
			return
		}
		err = overlay.Set(flag.Name, flag.Value.String())
	})
	return err
}
