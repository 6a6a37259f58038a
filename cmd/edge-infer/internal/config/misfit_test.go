package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// All mistakes of a file are told at once, each with its line, in words of the file.
func TestAllMistakesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	check := func(lines ...string) (told []string) {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		_, mistakes := CheckFile(path)
		for _, mistake := range mistakes {
			told = append(told, strings.TrimPrefix(mistake.Error(), "config "+path+" "))
		}
		return told
	}
	require.Equal(t, []string{
		`line 2: unknown key "confidense", did you mean "confidence"?`,
		`line 3: detect.max "many" must be a whole number`,
		`line 4: detect.track "perhaps" must be true or false`,
		`line 5: mqtt "embedded" must be a group of settings on indented lines of their own`,
		`line 8: cameras[0].stall "soon" must be a time like 5s or 1m30s`,
		`line 9: cameras[1].analytics.zones "yard" must be a list, as in [a, b] or on lines that begin with -`,
		`line 10: thermal.margin "[1, 2]" must be a number`,
	}, check(
		"detect:", "  confidense: 0.5", "  max: many", "  track: perhaps", "mqtt: embedded", "cameras:", "  - uri: demo", "    stall: soon",
		"  - {uri: demo, analytics: {zones: yard}}", "thermal: {margin: [1, 2]}"))
	told := check("device: a/b", "detect:", "  confidence: 2", "cameras:", "  - {name: a, uri: demo}", "  - {name: a, uri: demo}",
		"  - name: c", "    uri: foo://x", "web:", "  user: me")
	require.Len(t, told, 5)
	require.Equal(t, `line 1: device "a/b" must be a name without + / #`, told[0])
	require.Equal(t, `line 3: detect.confidence "2" must be over 0 and under 1`, told[1])
	require.Equal(t, `line 9: web.user and web.password_file: one needs the other`, told[2])
	require.Equal(t, `line 6: cameras[1].name "a" is used twice`, told[3])
	require.Contains(t, told[4], "line 8: camera c: parse foo://x: unknown scheme")
	require.Empty(t, check("base: &b {confidence: 0.5}", "detect: *b")[1:], "an anchor needs a place: only the unknown key is told")
	_, err := (&Sources{File: path, Environment: func(string) (string, bool) { return "", false }}).Load()
	require.NotContains(t, err.Error(), "\n")
}

// What follows the syntax in an unusual way is read as before.
func TestUnusualFilesFit(t *testing.T) {
	for _, text := range []string{
		"detect: {<<: {max: 5}}\n", "device: 12\n", "detect:\n", "cameras: []\n", "cameras:\n- uri: 0\n  name: a\n",
		"device: &d gate\nmqtt: {user: *d}\n",
		"device: !!str 12\n", "detect: {confidence: 1}\n",
		"cameras: [{name: a, uri: demo, analytics: {objects: {score: {person: 0.5}}}}]\n", "device: |\n  gate\n",
	} {
		_, err := Default().merge("f.yaml", []byte(text))
		require.NoError(t, err, text)
	}
}
