package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
)

// DefaultFile is a configuration file that says the built-in defaults, each with its meaning, its flag and its environment variable.
func DefaultFile() (string, error) {
	all, err := Settings()
	if err != nil {
		return "", err
	}
	var file strings.Builder
	file.WriteString("# edge-infer configuration. What is left out has the value shown here.\n")
	section := ""
	for _, s := range all {
		group, name, nested := strings.Cut(s.Key, ".")
		indent := "  "
		if !nested {
			group, name, indent = "", s.Key, ""
		}
		if group != section {
			file.WriteString("\n")
			if group != "" {
				file.WriteString(group + ":\n")
			}
			section = group
		}
		fmt.Fprintf(&file, "%s# %s (--%s, %s)\n%s%s: %s\n", indent, s.Help, s.Flag, s.Variable, indent, name, s.Default)
	}
	file.WriteString("\n" + camerasComment() + "\n" + cascadesComment())
	return file.String(), nil
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
