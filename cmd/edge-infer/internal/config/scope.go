package config

import (
	"slices"

	"github.com/spf13/pflag"
)

// Scope is the sections of the configuration that a command uses: those that it has flags for, and those that must be right. nil is all of
// them.
type Scope []string

// AllSections is what run and doctor use.
func AllSections() Scope { return nil }

// NetworkSections is what commands use that run the model without cameras, a broker or a page.
func NetworkSections() Scope {
	return Scope{"model", "engine", "remote", "detect", "log", "log_format"}
}

// ImageSections is what commands use beside that show them images.
func ImageSections() Scope { return append(NetworkSections(), "look") }

// BackendSections are the sections of a command that only looks at what could run a network.
func BackendSections() Scope { return Scope{"engine", "remote"} }

// BrokerSections is what commands use that speak to the broker alone.
func BrokerSections() Scope { return Scope{"device", "mqtt", "log", "log_format"} }

func (s Scope) has(section string) bool { return s == nil || slices.Contains(s, section) }

// Flags gives the settings of a scope their flags, which change c.
func Flags(c *Config, flags *pflag.FlagSet, scope Scope) {
	for _, s := range settings(c) {
		if scope.has(s.section()) {
			s.bind(flags, s.flag, s.help)
			_ = flags.SetAnnotation(s.flag, sectionAnnotation, []string{s.group()}) // the flag exists
			if s.former() != "" {
				AddFormerFlag(flags, s.former(), s.flag)
			}
		}
	}
}

// sectionAnnotation is what a setting's flag is marked with.
const sectionAnnotation = "section"

// group is the section that help tells the setting in: those that stand alone in the file are in none.
func (s *setting) group() string {
	if s.section() == s.key {
		return ""
	}
	return s.section()
}

// Section is the section of the configuration file that a flag's setting is in; "" for other flags, and for settings in none.
func Section(flag *pflag.Flag) string {
	if section := flag.Annotations[sectionAnnotation]; len(section) > 0 {
		return section[0]
	}
	return ""
}
