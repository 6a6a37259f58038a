package manual

import (
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
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
	all, err := config.Settings()
	if err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString(referenceHead + "## Settings\n\n| key | default | meaning | flag, variable |\n|---|---|---|---|\n")
	for _, s := range all {
		value := s.Default
		if s.Key == config.NameKey {
			value = "the host's name"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | `--%s`, `%s` |\n", s.Key, value, cell(s.Help), s.Flag, s.Variable)
	}
	for _, list := range config.Lists() {
		fmt.Fprintf(&page, "\n## Each of `%s`\n\n| key | example | meaning |\n|---|---|---|\n", list.Key)
		for _, s := range list.Settings {
			fmt.Fprintf(&page, "| `%s` | `%s` | %s |\n", s.Key, s.Example, cell(s.Help))
		}
	}
	return page.String(), nil
}

// cell is text within a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
