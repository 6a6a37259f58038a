package config

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

const referenceHead = `# Configuration

Made by ` + "`edge-infer config reference`" + ` from the table of settings; edit that.

Every setting has a key in the YAML file, a flag and an environment variable. A later source wins: built-in value, file, the files of ` + "`conf.d`" + `
beside it in the order of their names, environment, flags. Cameras and cascades of later files are added to those before.

    edge-infer config defaults >edge-infer.yaml        # a commented file with every default
    edge-infer config check edge-infer.yaml            # every mistake with its line, nothing is disturbed
    edge-infer config show --config edge-infer.yaml --origin
    edge-infer config schema >edge-infer.schema.json   # for editors: # yaml-language-server: $schema=edge-infer.schema.json

## Secrets

` + "`${NAME}`" + ` in any text of the file stands for an environment variable, ` + "`${file:PATH}`" + ` for what a file holds, ` + "`$${`" + ` for a plain ` + "`${`" +
	`. In an address the secret is
escaped, so any character may be in a password. References are read again with the configuration.

    cameras:
      - {name: gate, uri: "rtsp://admin:${file:/etc/edge-infer/gate-password}@192.0.2.10/stream"}

`

// Reference is the documentation page of every setting, in Markdown.
func Reference() (string, error) {
	c := Default()
	c.Device = "" // the host's name is told in words
	flags := pflag.NewFlagSet("reference", pflag.ContinueOnError)
	Flags(c, flags, Everything())
	var page strings.Builder
	page.WriteString(referenceHead + "## Settings\n\n| key | default | meaning | flag, variable |\n|---|---|---|---|\n")
	for _, s := range settings(c) {
		value, err := inYAML(flags.Lookup(s.flag).Value)
		if err != nil {
			return "", fmt.Errorf("default of %s: %w", s.key, err)
		}
		if s.key == "device" {
			value = "the host's name"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | `--%s`, `%s` |\n", s.key, value, cell(s.help), s.flag, s.variable())
	}
	for _, list := range []struct {
		name     string
		settings []listSetting
	}{{"cameras", cameraSettings()}, {"cascade", cascadeSettings()}} {
		fmt.Fprintf(&page, "\n## Each of `%s`\n\n| key | example | meaning |\n|---|---|---|\n", list.name)
		for _, s := range list.settings {
			fmt.Fprintf(&page, "| `%s` | `%s` | %s |\n", s.key, s.example, cell(s.help))
		}
	}
	return page.String(), nil
}

// cell is text within a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
