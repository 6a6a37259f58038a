package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
)

// camerasComment stands for the one part of the file that is a list.
const camerasComment = `# Cameras. Each has a name, which is its part of the MQTT topics, and an address: 0, /dev/video0, csi://0, rtsp://..., http://...,
# a file, a directory of pictures, gst:PIPELINE or demo. interval runs the network on every n-th frame; stall is how long a camera may
# be silent before it is opened again. analytics holds zones and lines, as shares of the picture from 0 to 1 or in pixels of a picture
# of width x height: a zone counts who is in it, a line who crosses it, seen from its first point to the second from left to right as in.
# cameras:
#   - name: gate
#     uri: rtsp://192.0.2.10/stream
#     interval: 1
#     stall: 5s
#     analytics:
#       zones:
#         - name: yard
#           points: [{x: 0.1, y: 0.5}, {x: 0.9, y: 0.5}, {x: 0.9, y: 1}, {x: 0.1, y: 1}]
#           labels: [person]
#           loiter: 1m
#       lines:
#         - name: door
#           from: {x: 0.5, y: 0}
#           to: {x: 0.5, y: 1}
`

// DefaultFile is a configuration file that says the built-in defaults, each with its meaning, its flag and its environment variable.
func DefaultFile() (string, error) {
	c := Default()
	flags := pflag.NewFlagSet("defaults", pflag.ContinueOnError)
	Flags(c, flags)
	var file strings.Builder
	file.WriteString("# edge-infer configuration. What is left out has the value shown here.\n")
	section := ""
	for _, s := range settings(c) {
		group, name, nested := strings.Cut(s.key, ".")
		indent := "  "
		if !nested {
			group, name, indent = "", s.key, ""
		}
		if group != section {
			file.WriteString("\n")
			if group != "" {
				file.WriteString(group + ":\n")
			}
			section = group
		}
		value, err := literal(flags.Lookup(s.flag).Value)
		if err != nil {
			return "", fmt.Errorf("default of %s: %w", s.key, err)
		}
		fmt.Fprintf(&file, "%s# %s (--%s, %s)\n%s%s: %s\n", indent, s.help, s.flag, s.variable(), indent, name, value)
	}
	file.WriteString("\n" + camerasComment)
	return file.String(), nil
}

// literal is a flag's value as YAML.
func literal(value pflag.Value) (string, error) {
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
