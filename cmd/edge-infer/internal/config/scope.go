package config

import (
	"slices"
	"time"

	"github.com/spf13/pflag"
)

// Scope lists the configuration sections that a command uses: it has flags for them and validates them. nil means all sections.
type Scope []string

// AllSections is the scope of run and doctor.
func AllSections() Scope { return nil }

// NetworkSections is the scope of commands that run the model without cameras, broker and page.
func NetworkSections() Scope {
	return Scope{"model", "engine", "remote", "detect", "log", "log_format"}
}

// ImageSections is the scope of commands that run the model on images.
func ImageSections() Scope { return append(NetworkSections(), "inference") }

// BackendSections is the scope of a command that only probes backends.
func BackendSections() Scope { return Scope{"engine", "remote"} }

// BrokerSections is the scope of commands that only connect to the broker.
func BrokerSections() Scope { return Scope{"name", "mqtt", "log", "log_format"} }

// BundleSections is the scope of commands that read model bundles.
func BundleSections() Scope { return Scope{"bundle"} }

// UpdateSections is the scope of commands about the updates of a daemon on this machine.
func UpdateSections() Scope { return append(BundleSections(), "name") }

// FleetSections is the scope of commands for many devices on a broker.
func FleetSections() Scope { return append(BrokerSections(), "bundle") }

func (s Scope) has(section string) bool { return s == nil || slices.Contains(s, section) }

// patientTimeout is the default time limit of a request to an inference server where no camera waits for the answer.
const patientTimeout = 30 * time.Second

// defaults returns the default settings of the scope's commands. Those without cameras wait longer for an inference server.
func (s Scope) defaults() *Config {
	c := Default()
	if s != nil {
		c.Remote.Timeout = patientTimeout
	}
	return c
}

// Flags adds the flags of the scope's settings, which change c.
func Flags(c *Config, flags *pflag.FlagSet, scope Scope) {
	for _, s := range settings(c) {
		if s.flag != "" && scope.has(s.section()) {
			s.bind(flags, s.flag, s.help)
			_ = flags.SetAnnotation(s.flag, sectionAnnotation, []string{s.group()}) // the flag exists
		}
	}
}

// byKey returns the values of all settings of c under their keys.
func byKey(c *Config) *pflag.FlagSet {
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	for _, s := range settings(c) {
		s.bind(flags, s.key, s.help)
	}
	return flags
}

// scopeAnnotation marks the flag of the configuration file with the scope of its command.
const scopeAnnotation = "scope"

// sectionAnnotation marks the flag of a setting with its section.
const sectionAnnotation = "section"

// group returns the section under which help lists the setting, "" for a key without section.
func (s *setting) group() string {
	if s.section() == s.key {
		return ""
	}
	return s.section()
}

// Section returns the configuration section of a flag's setting, "" for other flags and for settings without section.
func Section(flag *pflag.Flag) string {
	if section := flag.Annotations[sectionAnnotation]; len(section) > 0 {
		return section[0]
	}
	return ""
}
