package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const twoCameras = `mqtt: {url: "off"}
cameras:
  - {name: a, uri: "demo?width=320&height=240&fps=15"}
  - {name: b, uri: "demo?width=320&height=240&fps=15&seed=2"}
`

// showing reads frames until each of the cameras has shown itself.
func showing(t *testing.T, p *program, cameras ...string) {
	missing := map[string]bool{}
	for _, camera := range cameras {
		missing[camera] = true
	}
	for len(missing) > 0 {
		f, more := p.frame()
		require.True(t, more, p.stderr)
		delete(missing, f.Camera)
	}
}

func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	logged := func(p *program, text string) {
		require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), text) }, patience, 20*time.Millisecond, "%s", p.stderr)
	}
	write(twoCameras)
	p := start(t, "--config", path, "--json")
	showing(t, p, "a", "b")

	write(strings.Replace(twoCameras, "name: a", "name: c", 1)) // the file's change is noticed
	showing(t, p, "c", "b")
	logged(p, `msg="configuration changed" cameras=2 undisturbed=1`)

	write(strings.Replace(twoCameras, "fps=15&seed=2", "fps=0&seed=2", 1)) // nothing of a bad file comes into force
	require.NoError(t, p.command.Process.Signal(syscall.SIGHUP))
	logged(p, "configuration kept as it is")
	showing(t, p, "c", "b")

	write("detekt: {}\n")
	logged(p, `unknown key`)
	showing(t, p, "c", "b")

	write(twoCameras + "detect: {confidence: 0.5}\n") // cannot be changed in place
	logged(p, "restarting")
	p.rest() // the run so far ends with its statistics
	showing(t, p, "a", "b")
	require.NoError(t, p.stop(syscall.SIGTERM))
}
