package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

const twoCameras = `mqtt: {url: "off"}
cameras:
  - {name: a, uri: "demo?width=320&height=240&fps=15"}
  - {name: b, uri: "demo?width=320&height=240&fps=15&seed=2"}
`

// showing reads frames until each of the cameras has shown itself.
func showing(t *testing.T, p *programtest.Program, cameras ...string) {
	missing := map[string]bool{}
	for _, camera := range cameras {
		missing[camera] = true
	}
	for len(missing) > 0 {
		f, more := p.Frame()
		require.True(t, more, p.Stderr)
		delete(missing, f.Camera)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	logged := func(p *programtest.Program, text string) {
		require.Eventually(t, func() bool { return strings.Contains(p.Stderr.String(), text) }, programtest.Patience, 20*time.Millisecond, "%s", p.Stderr)
	}
	write(twoCameras)
	p := programtest.Start(t, "--config", path, "--json")
	showing(t, p, "a", "b")

	write(strings.Replace(twoCameras, "name: a", "name: c", 1)) // the file's change is noticed
	showing(t, p, "c", "b")
	logged(p, `msg="configuration changed" cameras=2 undisturbed=1`)

	write(strings.Replace(twoCameras, "fps=15&seed=2", "fps=0&seed=2", 1)) // nothing of a bad file comes into force
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	logged(p, "configuration kept as it is")
	showing(t, p, "c", "b")

	write("detekt: {}\n")
	logged(p, `unknown key`)
	showing(t, p, "c", "b")

	// A zone, an interval and thresholds are new to the frame loop, not to the camera: its numbers go on.
	changed := strings.Replace(twoCameras, "name: a", "name: c", 1)
	changed = strings.Replace(changed, "fps=15\"}", `fps=15", analytics: {zones: [{name: yard, points: [{x: 0, y: 0}, {x: 1, y: 0}, {x: 0, y: 1}]}]}}`, 1)
	changed = strings.Replace(changed, "seed=2\"}", "seed=2\", interval: 2}", 1)
	number := func() uint64 { // of the camera's next frame
		for {
			if f, more := p.Frame(); !more || f.Camera == "c" {
				require.True(t, more)
				return f.Seq
			}
		}
	}
	before := number()
	write(changed + "detect: {confidence: 0.5}\n")
	logged(p, `msg="configuration changed" cameras=2 undisturbed=2`)
	for range 10 {
		after := number()
		require.Greater(t, after, before)
		before = after
	}

	write(twoCameras + "engine: {threads: 1}\n") // cannot be changed in place
	logged(p, "restarting")
	p.Rest() // the run so far ends with its statistics
	showing(t, p, "a", "b")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
