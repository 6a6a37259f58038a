package config

import (
	"slices"

	"github.com/spf13/pflag"
)

// Scope is the sections of the configuration that a command uses: those that it has flags for, and those that must be right. nil is all of
// them.
type Scope []string

// Everything is what run and doctor use.
func Everything() Scope { return nil }

// Network is what commands use that run the model without cameras, a broker or a page.
func Network() Scope { return Scope{"model", "engine", "remote", "detect", "log"} }

// Pictures is what commands use beside that show them pictures.
func Pictures() Scope { return append(Network(), "look") }

// Broker is what commands use that speak to the broker alone.
func Broker() Scope { return Scope{"device", "mqtt", "log"} }

func (s Scope) has(section string) bool { return s == nil || slices.Contains(s, section) }

// Flags gives the settings of a scope their flags, which change c.
func Flags(c *Config, flags *pflag.FlagSet, scope Scope) {
	for _, s := range settings(c) {
		if scope.has(s.section()) {
			s.bind(flags, s.flag, s.help)
			if s.former() != "" {
				Formerly(flags, s.former(), s.flag)
			}
		}
	}
}
