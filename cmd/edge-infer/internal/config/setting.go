package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
)

// NameKey is the key of the device's name, whose default is the host name.
const NameKey = "name"

// Setting describes one setting for the documentation.
type Setting struct {
	Key, Flag, Variable, Help string // Flag is "" for a setting without one
	Default                   string // in YAML
	Common                    bool   // the short default file contains it
}

// List describes a list of the file and the settings of its elements.
type List struct {
	Key      string
	About    string // one sentence
	Settings []ListSetting
}

// ListSetting describes one setting of a list element.
type ListSetting struct {
	Key     string // path; [] after a list, * for any label
	Example string // in YAML
	Help    string
	Common  bool // the short default file contains it
}

// Settings describes every single value of the configuration, in the order of the default file.
func Settings() ([]Setting, error) {
	c := Default()
	values := byKey(c)
	var all []Setting
	for _, s := range settings(c) {
		value, err := inYAML(values.Lookup(s.key).Value)
		if err != nil {
			return nil, fmt.Errorf("default of %s: %w", s.key, err)
		}
		all = append(all, Setting{s.key, s.flag, s.variable(), s.help, value, s.isCommon()})
	}
	return all, nil
}

// Lists describes the lists of the configuration.
func Lists() []List {
	return []List{
		{"cameras", "Cameras and their analytics; only name and uri are required.", cameraSettings()},
		{
			"cascade", "Secondary networks, which run on each detected object; only name and model are required.",
			cascadeSettings(),
		},
		{"webhooks", "HTTP receivers of events; name, url and a secret are required.", webhookSettings()},
	}
}

// inYAML returns a flag's value as YAML.
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
