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

// Formerly lets a flag be given by the name that it had once, which help does not show.
func Formerly(flags *pflag.FlagSet, once, now string) {
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
	return r.Value.Set(text)
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
