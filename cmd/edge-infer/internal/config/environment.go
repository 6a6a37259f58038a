package config

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/spelling"
)

const (
	variablePrefix = "EDGE_INFER_"
	cameraVariable = variablePrefix + "CAMERA"
	testsPrefix    = variablePrefix + "TEST_" // what the tests tell each other
)

// variable is the setting's environment variable.
func (s *setting) variable() string { return variable(s.flag) }

func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets what EDGE_INFER_* variables say.
func (l *layers) applyEnvironment() {
	flags := pflag.NewFlagSet("environment", pflag.ContinueOnError)
	Flags(l.Config, flags, AllSections())
	for _, s := range settings(l.Config) {
		name := s.variable()
		value, set := l.lookup(name)
		if !set && s.former() != "" {
			name = variable(s.former())
			value, set = l.lookup(name)
		}
		if set {
			l.set(&s, flags.Lookup(s.flag).Value, value, location{source: ofEnvironment, name: name})
		}
	}
	if value, set := l.lookup(cameraVariable); set {
		cameras, err := ParseCameras(strings.Fields(value))
		l.setCameras(cameras, err, location{source: ofEnvironment, name: cameraVariable})
	}
}

// StrayVariables gives a line for each variable of this program's in an environment, as os.Environ gives it, that nothing reads or that has
// another name now. Values are not told: they may be secrets.
func StrayVariables(environment []string) (lines []string) {
	known := []string{
		cameraVariable, passwordVariable, tokenVariable, remotePasswordVariable, "EDGE_INFER_TENSORRT", "EDGE_INFER_ONNXRUNTIME",
		"EDGE_INFER_LIBCUDA",
	}
	former := FormerVariables()
	isKnown := map[string]bool{}
	for _, s := range settings(Default()) {
		known = append(known, s.variable())
	}
	for _, name := range known {
		isKnown[name] = true
	}
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, variablePrefix) || isKnown[name] || strings.HasPrefix(name, testsPrefix):
		case former[name] != "":
			lines = append(lines, fmt.Sprintf("environment %s is called %s now", name, former[name]))
		default:
			lines = append(lines, stray(name, known))
		}
	}
	return lines
}

func stray(name string, known []string) string {
	if name == variable("config") {
		return fmt.Sprintf("environment %s is not read, give --config FILE", name)
	}
	suffixes := make([]string, len(known))
	for i, k := range known {
		suffixes[i] = strings.TrimPrefix(k, variablePrefix)
	}
	if near := spelling.Nearest(strings.TrimPrefix(name, variablePrefix), suffixes); near != "" {
		return fmt.Sprintf("environment %s is not read, did you mean %s%s?", name, variablePrefix, near)
	}
	return fmt.Sprintf("environment %s is not read; edge-infer config defaults names every variable", name)
}
