package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
)

// NameKey is the setting whose default is the host's name.
const NameKey = "device"

// Setting is what documents tell of one setting.
type Setting struct {
	Key, Flag, Variable, Help string
	Default                   string // in YAML
}

// List is a list of the file, with what each of its elements may hold.
type List struct {
	Key      string
	About    string // one sentence
	Settings []ListSetting
}

// ListSetting is one value of a list's element in the file.
type ListSetting struct {
	Key     string // path; [] behind a list, * for any label
	Example string // in YAML
	Help    string
}

// Settings describes every single value of the configuration, in the order of the default file.
func Settings() ([]Setting, error) {
	c := Default()
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	Flags(c, flags, AllSections())
	var all []Setting
	for _, s := range settings(c) {
		value, err := inYAML(flags.Lookup(s.flag).Value)
		if err != nil {
			return nil, fmt.Errorf("default of %s: %w", s.key, err)
		}
		all = append(all, Setting{s.key, s.flag, s.variable(), s.help, value})
	}
	return all, nil
}

// Lists describes the lists of the configuration.
func Lists() []List {
	return []List{
		{"cameras", "Cameras, and what to look for in their images; only name and uri are needed.", cameraSettings()},
		{
			"cascade", "Second networks that look at the objects which the model finds; only name and model are needed.",
			cascadeSettings(),
		},
	}
}

// inYAML is a flag's value as YAML.
func inYAML(value pflag.Value) (string, error) {
	switch v := value.(type) {
	case pflag.SliceValue:
		return "[" + strings.Join(v.GetSlice(), ", ") + "]", nil
	default:
		if value.Type() != "string" {
			return value.String(), nil
		}
		text, err := yaml.Marshal(value.String())
		return strings.TrimSpace(string(text)), err
	}
}
