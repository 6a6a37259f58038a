package config

import (
	"fmt"

	"github.com/spf13/pflag"
)

// former is the name that the setting's flag had once, "" for none: it and its variable are still understood.
func (s *setting) former() string {
	switch s.key {
	case "device":
		return "name"
	case "engine.device":
		return "device"
	}
	return ""
}

// AddFormerFlag lets a flag be given by the name that it had once, which help does not show.
func AddFormerFlag(flags *pflag.FlagSet, once, now string) {
	flag := flags.Lookup(now)
	flags.AddFlag(&pflag.Flag{Name: once, Usage: "see --" + now, Hidden: true, Value: &renamed{flag.Value, flag}})
}

// renamed is the value of a flag under its former name.
type renamed struct {
	pflag.Value
	now *pflag.Flag
}

// Set gives the value to the flag itself.
func (r *renamed) Set(text string) error {
	r.now.Changed = true
	return r.now.Value.Set(text)
}

// FormerFlags gives a line for each flag that was given by its former name.
func FormerFlags(flags *pflag.FlagSet) (lines []string) {
	flags.Visit(func(flag *pflag.Flag) {
		if r, ok := flag.Value.(*renamed); ok {
			lines = append(lines, fmt.Sprintf("--%s is called --%s now", flag.Name, r.now.Name))
		}
	})
	return lines
}

// FormerVariables are the names that variables had once, each with its name now.
func FormerVariables() map[string]string {
	former := map[string]string{}
	for _, s := range settings(Default()) {
		if s.former() != "" {
			former[variable(s.former())] = s.variable()
		}
	}
	return former
}

// FormerKey is a key of the file that had a value of its own once, and the setting that has it now.
type FormerKey struct{ Key, Now string }

// FormerKeys are all of them. They are not understood any more: config migrate writes them anew.
func FormerKeys() []FormerKey { return []FormerKey{{"web", "web.listen"}} }

// migratable is the hint for a value that stands where one stood once.
func migratable(key string) string {
	for _, former := range FormerKeys() {
		if former.Key == key {
			return fmt.Sprintf(" (it is %s now: edge-infer config migrate FILE)", former.Now)
		}
	}
	return ""
}
