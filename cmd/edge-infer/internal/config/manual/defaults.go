package manual

import (
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// exampleLabel stands for any label.
const exampleLabel = "person"

// DefaultFile is a configuration file that says the built-in defaults, each with its meaning, its flag and its environment variable.
func DefaultFile() (string, error) {
	all, err := config.Settings()
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
	for _, list := range config.Lists() {
		file.WriteString("\n" + listComment(&list))
	}
	return file.String(), nil
}

// listComment is a list of the file, as an example of one element behind comment signs.
func listComment(list *config.List) string {
	var file strings.Builder
	fmt.Fprintf(&file, "# %s\n# %s:\n", list.About, list.Key)
	var open []string // keys of what the line before was in
	for i, s := range list.Settings {
		path := strings.Split(strings.ReplaceAll(list.Key+"[]."+s.Key, "*", exampleLabel), ".")
		level, keys := len(path)-1, path[:len(path)-1]
		same := 0
		for same < min(len(open), level) && open[same] == keys[same] {
			same++
		}
		dash := i == 0
		for depth := same; depth < level; depth++ {
			if depth > 0 {
				fmt.Fprintf(&file, "# %s%s:\n", indent(keys[:depth], false), strings.TrimSuffix(keys[depth], "[]"))
			}
			dash = strings.HasSuffix(keys[depth], "[]")
		}
		line := fmt.Sprintf("# %s%s: %s", indent(keys, dash), path[level], s.Example)
		if s.Help != "" {
			line += "  # " + s.Help
		}
		file.WriteString(line + "\n")
		open = keys
	}
	return file.String()
}

// indent is the space before a key inside of others; the first one of a list's element begins with a dash.
func indent(keys []string, dash bool) string {
	width := 0
	for _, key := range keys {
		width += 2
		if strings.HasSuffix(key, "[]") {
			width += 2
		}
	}
	if dash {
		return strings.Repeat(" ", width-2) + "- "
	}
	return strings.Repeat(" ", width)
}
