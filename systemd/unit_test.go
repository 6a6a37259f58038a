package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// analyze runs the real systemd-analyze on the units, with a program that exists in the place of the installed one.
func analyze(t *testing.T, arguments ...string) {
	t.Helper()
	tool := testtool.Program(t, "systemd-analyze")
	program, err := os.Executable()
	require.NoError(t, err)
	for _, name := range []string{"edge-infer.service", "edge-infer@.service"} {
		unit, err := os.ReadFile(name)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(unit), "/usr/bin/edge-infer", program)), 0o600))
		output, err := exec.Command(tool, append(arguments, path)...).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, output)
		t.Logf("%s: %s", name, output)
	}
}

func TestUnitsAreValid(t *testing.T) { analyze(t, "verify", "--man=no") }

// TestUnitsAreConfined holds the exposure to 3.0 of 10, which systemd-analyze counts in tenths.
func TestUnitsAreConfined(t *testing.T) { analyze(t, "security", "--offline=true", "--threshold=30") }

// TestUnitsHaveCaches: libraries keep their files in the unit's cache directory, because an instance cannot write its home directory.
func TestUnitsHaveCaches(t *testing.T) {
	for _, name := range []string{"edge-infer.service", "edge-infer@.service"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		unit := string(text)
		require.Contains(t, unit, "\nCacheDirectory=edge-infer\n", name)
		for _, variable := range []string{"XDG_CACHE_HOME", "CUDA_CACHE_PATH", "GST_REGISTRY"} {
			require.Regexp(t, `(?m)^Environment=(.* )?`+variable+`=%C/edge-infer\b`, unit, name)
		}
	}
}

// TestTheTemplateIsTheUnit: an instance differs in its name, its configuration and its state, and in nothing else.
func TestTheTemplateIsTheUnit(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(text), "")
	}
	template := strings.NewReplacer("/etc/edge-infer/%i.yaml", "/etc/edge-infer/edge-infer.yaml", "sensor %i", "sensor",
		"StateDirectory=edge-infer/%i", "StateDirectory=edge-infer").Replace(read("edge-infer@.service"))
	require.Equal(t, read("edge-infer.service"), template)
	require.NotContains(t, template, "%i")
}
