package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// exampleLabel is the class name in examples.
const exampleLabel = "person"

// DefaultFile returns a configuration file with the built-in defaults, each with its meaning, flag and environment variable: the common
// settings and the names and addresses of cameras, or every setting and every key of a camera and of a secondary network.
func DefaultFile(complete bool) (string, error) {
	all, err := config.Settings()
	if err != nil {
		return "", err
	}
	var file strings.Builder
	file.WriteString("# edge-infer configuration. A setting that is missing has the default shown here.\n")
	if !complete {
		file.WriteString("# These are the common settings; edge-infer config defaults --all prints every one.\n")
	}
	section := ""
	for _, s := range all {
		if !complete && !s.Common {
			continue
		}
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
		fmt.Fprintf(&file, "%s# %s (%s)\n%s%s: %s\n", indent, s.Help, alternatives(&s), indent, name, s.Default)
	}
	for _, list := range config.Lists() {
		if !complete {
			list.Settings = slices.DeleteFunc(list.Settings, func(s config.ListSetting) bool { return !s.Common })
		}
		file.WriteString("\n" + listComment(&list))
	}
	return file.String(), nil
}

// alternatives returns the setting's flag, if it has one, and its environment variable.
func alternatives(s *config.Setting) string {
	if s.Flag == "" {
		return s.Variable
	}
	return "--" + s.Flag + ", " + s.Variable
}

// listComment returns a commented example of a list with one element.
func listComment(list *config.List) string {
	var file strings.Builder
	fmt.Fprintf(&file, "# %s\n# %s:\n", list.About, list.Key)
	var open []string // groups of the line before
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

// indent returns the space before a key; the first key of a list element begins with a dash.
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
