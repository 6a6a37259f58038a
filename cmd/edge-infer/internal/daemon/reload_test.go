package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
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
		require.Eventually(t, func() bool { return strings.Contains(p.Stderr.String(), text) }, programtest.Patience, 20*time.Millisecond, "%s",
			p.Stderr)
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
	changed = strings.Replace(changed, "fps=15\"}",
		`fps=15", analytics: {zones: [{name: yard, points: [{x: 0, y: 0}, {x: 1, y: 0}, {x: 0, y: 1}]}]}}`, 1)
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
	write(changed + "detect: {confidence: 0.5}\nbundle: {keys: [belt.pub]}\n") // keys are for commands
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

// TestAConfigurationThatCannotBeOpenedChangesNothing: what runs goes on, and says why.
func TestAConfigurationThatCannotBeOpenedChangesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	const sound = "name: gate\ncameras: [{name: belt, uri: 'demo?width=160&height=120&fps=10'}]\n"
	running := sound + fmt.Sprintf("mqtt: {listen: '127.0.0.1:%d'}\nweb: {listen: '127.0.0.1:%d'}\n", programtest.FreePort(t),
		programtest.FreePort(t))
	require.NoError(t, os.WriteFile(path, []byte(running), 0o600))
	p := programtest.Start(t, "--config", path)
	page := p.PrintedAfter("web page at ")
	p.Discard()
	status := func() (inferred uint64, reason string) {
		var status struct {
			Cameras []struct{ Pipeline struct{ Inferred uint64 } }
			Reload  struct{ Error string }
		}
		_, text := programtest.Get(t, programtest.Visitor(t), page+"api/status")
		require.NoError(t, json.Unmarshal(text, &status), string(text))
		return status.Cameras[0].Pipeline.Inferred, status.Reload.Error
	}
	try := func(name, text, want string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
		var inferred uint64
		var reason string
		require.Eventually(t, func() bool {
			inferred, reason = status()
			return strings.Contains(reason, want)
		}, programtest.Patience, 30*time.Millisecond, "%s: %s", name, p.Stderr)
		require.NotEmpty(t, reason, name)
		require.Eventually(t, func() bool {
			now, _ := status()
			return now > inferred
		}, programtest.Patience, 30*time.Millisecond, "%s: frames go on", name)
	}
	for _, mistake := range programtest.Mistakes(t, sound) {
		try(mistake.Name, mistake.YAML, mistake.Want)
	}
	try("half a file", running[:len(running)-20], "config "+path)
	try("an empty file", "", "no camera")
	require.NoError(t, os.WriteFile(path, []byte(running), 0o600))
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool {
		_, reason := status()
		return reason == ""
	}, programtest.Patience, 30*time.Millisecond)
	p.Logged("configuration unchanged")
	require.NotContains(t, p.Stderr.String(), "restarting")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// TestAPipeInTheTokensPlaceBlocksNoReload: the reload is refused, the next one works, and SIGTERM ends the program.
func TestAPipeInTheTokensPlaceBlocksNoReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, token, kept := filepath.Join(dir, "edge-infer.yaml"), filepath.Join(dir, "token"), filepath.Join(dir, "kept")
	const cameras = "mqtt: {url: 'off'}\ncameras: [{name: belt, uri: 'demo?width=160&height=120&fps=10'}]\n"
	text := cameras + "web: {listen: '127.0.0.1:0', token_file: " + token + "}\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))
	p := programtest.Start(t, "--config", path)
	p.PrintedAfter("web page at ")
	p.Discard()
	logged := func(text string, times int) {
		require.Eventually(t, func() bool { return strings.Count(p.Stderr.String(), text) == times }, programtest.Patience, 20*time.Millisecond,
			"%s", p.Stderr)
	}
	for refused := 1; refused <= 2; refused++ {
		require.NoError(t, os.Rename(token, kept))
		require.NoError(t, syscall.Mkfifo(token, 0o600))
		require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
		logged(`msg="configuration kept as it is" error="web token: read `+token+": a pipe or a device, not a regular file ", refused)
		if refused == 1 {
			require.NoError(t, os.Rename(kept, token))
			require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
			logged("configuration unchanged", 1)
		}
	}
	require.NotContains(t, p.Stderr.String(), "restarting")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// TestSignalsDuringARestartAreNoEnd: SIGHUP comes while one process takes the other's place.
func TestSignalsDuringARestartAreNoEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	write := func(threads int) {
		text := fmt.Sprintf("mqtt: {url: 'off'}\nengine: {threads: %d}\ncameras: [{name: belt, uri: 'demo?width=160&height=120&fps=5'}]\n",
			threads)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(1)
	// What this process handles is at its default in one that it starts, also where nohup has it ignored, which would end nothing ever.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	defer signal.Stop(handled)
	p := programtest.Start(t, "--config", path, "--json")
	showing(t, p, "belt")
	p.Discard()
	stop := make(chan struct{})
	var signalling sync.WaitGroup
	signalling.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				_ = p.Command.Process.Signal(syscall.SIGHUP)
			}
		}
	})
	for threads := 2; threads < 6; threads++ {
		write(threads)
		require.Eventually(t, func() bool { // the new process has heard a signal
			parts := strings.Split(p.Stderr.String(), "restarting")
			return len(parts) == threads && strings.Contains(parts[threads-1], "configuration unchanged")
		}, programtest.Patience, 5*time.Millisecond, "%s", p.Stderr)
	}
	close(stop)
	signalling.Wait()
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// TestRenewedSecretsAreReadAfterAReload: the old token opens the page no more.
func TestRenewedSecretsAreReadAfterAReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, path := filepath.Join(dir, "token"), filepath.Join(dir, "edge-infer.yaml")
	const before, after = "the-token-before-1234", "another-token-987654321"
	require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
	address := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil,
		"mqtt: {url: 'off'}\nweb: {listen: '%s', token_file: %s}\ncameras: [{name: belt, uri: 'demo?width=160&height=120&fps=5'}]\n",
		address, file), 0o600))
	p := programtest.Start(t, "--config", path)
	p.PrintedAfter("web page at ")
	p.Discard()
	ask := func(token string) (code int) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/status", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := programtest.Visitor(t).Do(request)
		if err != nil {
			return 0 // it restarts
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, ask(before))
	require.NoError(t, os.WriteFile(file, []byte("short"), 0o600))
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	p.Logged("the token has 5 characters, it needs 16")
	require.Equal(t, http.StatusOK, ask(before))
	require.NoError(t, os.WriteFile(file, []byte(after), 0o600))
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool { return ask(after) == http.StatusOK }, programtest.Patience, 50*time.Millisecond, "%s", p.Stderr)
	require.Equal(t, http.StatusUnauthorized, ask(before))
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
