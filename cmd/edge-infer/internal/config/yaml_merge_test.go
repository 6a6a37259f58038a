package config

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// As YAML says: of a mapping with merge keys its own values win, then those of the first base.
func TestMergeKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	load := func(text string) (*Config, []error) {
		return (&Sources{File: write(t, path, "model: {path: demo}\n"+text), Environment: nothing}).Check()
	}
	for _, text := range []string{`
cameras:
  - &base
    name: a
    uri: demo
    rate: 3
    motion: &m {enabled: true, sensitivity: 0.4, min_rate: 2}
  - <<: *base
    name: b
  - name: c
    <<: *base
    rate: 4
    motion:
      sensitivity: 0.7
      <<: *m
  - <<: [{rate: 5, interval: 2}, *base]
    name: d
    motion: {<<: *m}
  - <<: {rate: 6}
    <<: *base
    name: e
    motion:
      <<: *m
`, `
cameras:
  - &base {name: a, uri: demo, rate: 3, motion: &m {enabled: true, sensitivity: 0.4, min_rate: 2}}
  - &b {<<: *base, name: b}
  - {<<: *b, name: c, rate: 4, motion: {<<: *m, sensitivity: 0.7}}
  - {name: d, rate: 5, interval: 2, <<: *b}
  - {name: e, rate: 6, <<: [*b, *base]}
`} {
		c, mistakes := load(text)
		require.Empty(t, mistakes)
		require.Len(t, c.Cameras, 5)
		for i, want := range []struct {
			name        string
			rate        float64
			interval    int
			sensitivity float64
		}{{"a", 3, 0, 0.4}, {"b", 3, 0, 0.4}, {"c", 4, 0, 0.7}, {"d", 5, 2, 0.4}, {"e", 6, 0, 0.4}} {
			camera := &c.Cameras[i]
			require.Equal(t, want.name, camera.Name)
			require.Equal(t, "demo", camera.URI)
			require.EqualValues(t, want.rate, camera.Rate, want.name)
			require.Equal(t, want.interval, camera.Interval, want.name)
			require.InDelta(t, want.sensitivity, camera.Motion.Sensitivity, 1e-9, want.name)
			require.EqualValues(t, 2, camera.Motion.MinRate, want.name)
		}
	}

	for text, want := range map[string]string{
		"cameras: [&a {name: a, uri: demo, rat: 3}, {<<: *a, name: b}]":             `line 2: unknown key "rat", did you mean "rate"?`,
		"cameras: [&a {name: a, uri: demo, rate: 3e3}, {<<: *a, name: b, rate: 1}]": `line 2: cameras[0].rate "3000" must be 0 to 1000 a second`,
		"cameras: [&a {name: a, uri: demo}, {<<: *a}]":                              `line 2: cameras[1].name "a" is used twice`,
		"cameras: [{name: a, name: b, uri: demo}]": "line 2: cameras[0].name is set already " +
			"on line 2: keep one of them",
	} {
		_, mistakes := load(text)
		require.Len(t, mistakes, 1, "%s: %v", text, mistakes)
		require.EqualError(t, mistakes[0], "config "+path+" "+want)
	}
	for _, text := range []string{
		"cameras: [{<<: *none, name: a, uri: demo}]", "cameras: [&a {<<: *a, name: a, uri: demo}]", "cameras: [{<<: 3, name: a, uri: demo}]",
		"cameras: [&a {name: a, uri: demo}, {name: b, uri: demo, motion: {<<: *a, sensitivity: 0.5}}]",
	} {
		_, mistakes := load(text)
		require.NotEmpty(t, mistakes, text)
	}
}
