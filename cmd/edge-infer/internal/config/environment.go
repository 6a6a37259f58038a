package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/internal/spelling"
)

const (
	variablePrefix = "EDGE_INFER_"
	cameraVariable = variablePrefix + "CAMERA"
	testsPrefix    = variablePrefix + "TEST_" // read by the tests
)

// variable returns the setting's environment variable: EDGE_INFER_ and its flag, or its key if it has no flag.
func (s *setting) variable() string { return variable(cmp.Or(s.flag, s.key)) }

func variable(name string) string {
	return variablePrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// applyEnvironment applies the EDGE_INFER_* variables.
func (l *layers) applyEnvironment() {
	values := byKey(l.Config)
	for _, s := range settings(l.Config) {
		name := s.variable()
		if value, set := l.lookup(name); set {
			l.set(&s, values.Lookup(s.key).Value, value, location{source: ofEnvironment, name: name})
		}
	}
	if value, set := l.lookup(cameraVariable); set {
		cameras, err := ParseCameras(strings.Fields(value))
		l.setCameras(cameras, err, location{source: ofEnvironment, name: cameraVariable})
	}
}

// StrayVariables returns a line for each EDGE_INFER_* variable of an environment (as os.Environ returns it) that is not read.
// Values may be secrets and are not included.
func StrayVariables(environment []string) (lines []string) {
	known := []string{
		cameraVariable, passwordVariable, tokenVariable, remotePasswordVariable, "EDGE_INFER_TENSORRT", "EDGE_INFER_ONNXRUNTIME",
		"EDGE_INFER_LIBCUDA", "EDGE_INFER_LIBNVCUVID", "EDGE_INFER_LIBNVBUFSURFACE", "EDGE_INFER_ARGUS_SOCKET",
	}
	isKnown := map[string]bool{}
	for _, s := range settings(Default()) {
		known = append(known, s.variable())
	}
	for _, name := range known {
		isKnown[name] = true
	}
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, variablePrefix) && !isKnown[name] && !strings.HasPrefix(name, testsPrefix) {
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
	near, value, _ := strings.Cut(spelling.Flags().Suggest(strings.TrimPrefix(name, variablePrefix), suffixes), " ")
	switch {
	case value != "":
		return fmt.Sprintf("environment %s is not read, did you mean %s%s=%s?", name, variablePrefix, near, value)
	case near != "":
		return fmt.Sprintf("environment %s is not read, did you mean %s%s?", name, variablePrefix, near)
	}
	return fmt.Sprintf("environment %s is not read; edge-infer config defaults names every variable", name)
}
