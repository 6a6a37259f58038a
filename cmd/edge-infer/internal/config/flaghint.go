package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/internal/spelling"
)

// FlagHint returns what follows the error about an unknown flag of a command: the flag of flags that was meant, or the key of a setting
// without a flag if the command reads it from a file. It returns "" if it has no suggestion.
func FlagHint(flags *pflag.FlagSet, name string) string {
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	words := spelling.Flags()
	similar := words.SuggestAll(name, names)
	if key, variable := keyWithoutFlag(flags, name, len(similar) == 0); key != "" {
		return fmt.Sprintf(" (set %s in the file of --config%s)", key, variable)
	}
	for _, near := range similar {
		flag, value, _ := strings.Cut(near, " ")
		if strings.Contains(flags.Lookup(flag).Usage, value) { // --format of another command has other values
			return fmt.Sprintf(", did you mean --%s?", near)
		}
	}
	if slices.Contains(words[strings.ToLower(name)], "save") && flags.Lookup("camera") != nil {
		return " (to save annotated images use edge-infer infer FILES --save DIR)"
	}
	return ""
}

// keyWithoutFlag returns the key of a setting without a flag that an unknown flag is named after, if a command with these flags reads it,
// and the mention of its variable if it has one. With short, the key without its section is enough.
func keyWithoutFlag(flags *pflag.FlagSet, name string, short bool) (key, variable string) {
	file := flags.Lookup("config")
	if file == nil {
		return "", ""
	}
	scope := Scope(file.Annotations[scopeAnnotation])
	for _, s := range settings(Default()) {
		named := name == dashed(s.key) || short && name == dashed(strings.TrimPrefix(s.key, s.section()+"."))
		if s.flag == "" && scope.has(s.section()) && named {
			return s.key, ", or " + s.variable()
		}
	}
	if flags.Lookup("camera") == nil {
		return "", ""
	}
	ofCamera := func(name string) bool {
		return slices.ContainsFunc(cameraSettings(), func(s ListSetting) bool { return dashed(s.Key) == name })
	}
	if ofCamera(name) {
		return "cameras[]." + name, ""
	}
	for _, term := range spelling.Flags()[name] {
		if flags.Lookup(term) == nil && ofCamera(term) {
			return "cameras[]." + term, ""
		}
	}
	return "", ""
}

// dashed returns the key as a flag would be written.
func dashed(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }
