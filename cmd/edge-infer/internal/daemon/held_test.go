package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// heldProgram is a program with a healthy and a hanging network on one GPU: the latter hangs while a file exists.
type heldProgram struct {
	*programtest.Program
	t    *testing.T
	file string
}

func startHeld(t *testing.T, variable string, held bool) *heldProgram {
	environment, model := programtest.StandInGPU(t)
	dir := t.TempDir()
	g := &heldProgram{t: t, file: filepath.Join(dir, "held")}
	if held {
		g.hold()
	}
	file := filepath.Join(dir, "edge-infer.yaml")
	text := "mqtt: {url: 'off'}\nengine: {backend: tensorrt}\ncameras:\n"
	for camera, path := range map[string]string{"healthy": model, "hanging": programtest.StandInModel(t, "held")} {
		text += fmt.Sprintf("  - {name: %s, uri: 'demo?width=320&height=240&fps=20', model: {path: %s}}\n", camera, path)
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	g.Program = programtest.StartWith(t, append(environment, variable+"="+g.file), "run", "--config", file, "--json")
	return g
}

func (g *heldProgram) hold() { require.NoError(g.t, os.WriteFile(g.file, nil, 0o600)) }

func (g *heldProgram) letGo() { require.NoError(g.t, os.Remove(g.file)) }

// results reads so many results of a camera.
func (g *heldProgram) results(camera string, n int) {
	g.t.Helper()
	for n > 0 {
		f, more := g.Frame()
		require.True(g.t, more, "%s", g.Stderr)
		if f.Camera == camera {
			n--
		}
	}
}

// TestANetworkThatDoesNotReturnLeavesTheOthersAlone: while a request of one network takes for ever, the camera of the other network, on the
// same GPU, goes on. The network is opened again, and the program ends whatever hangs.
func TestANetworkThatDoesNotReturnLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	g := startHeld(t, "FAKE_TRT_REQUEST_HELD", false)
	g.results("hanging", 3)
	g.hold()
	g.results("healthy", 60) // three seconds; at most two requests of the other camera were in flight
	g.letGo()
	g.results("hanging", 3)

	g.hold()
	g.Logged(`"network failed" cameras=hanging error="the network hangs: a request has not returned for`)
	g.results("healthy", 60)
	g.letGo()
	g.Logged(`"network opened" cameras=hanging`)
	g.results("hanging", 3)

	g.hold()
	g.results("healthy", 20)
	require.NoError(t, g.Stop(syscall.SIGTERM), "the program ends although a request hangs")
}

// TestANetworkThatIsOpenedLate: opening one takes for ever. The camera of the other one starts without it, and it is used once it is open;
// the program also ends while it is not.
func TestANetworkThatIsOpenedLate(t *testing.T) {
	t.Parallel()
	for _, opens := range []bool{true, false} {
		g := startHeld(t, "FAKE_TRT_OPENING_HELD", true)
		g.results("healthy", 20)
		g.Logged(`"the cameras start without a network that is still being opened" cameras=hanging`)
		if opens {
			g.letGo()
			g.Logged(`"network opened" cameras=hanging`)
			g.results("hanging", 3)
		}
		require.NoError(t, g.Stop(syscall.SIGTERM), "%s", g.Stderr)
	}
}

// TestALaterReloadReplacesOneThatHangs: a network that the configuration names hangs while it is looked at. Meanwhile the next
// configuration comes into force, remote commands are answered, and the program ends.
func TestALaterReloadReplacesOneThatHangs(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	dir := t.TempDir()
	held, file := filepath.Join(dir, "held"), filepath.Join(dir, "edge-infer.yaml")
	environment = append(environment, "FAKE_TRT_OPENING_HELD="+held, "XDG_CACHE_HOME="+dir)
	const camera = "  - {name: %s, uri: 'demo?width=320&height=240&fps=20', model: {path: %s}}\n"
	head := "mqtt: {url: 'off'}\nengine: {backend: tensorrt}\ncameras:\n" + fmt.Sprintf(camera, "healthy", model)
	hanging := head + fmt.Sprintf(camera, "hanging", programtest.StandInModel(t, "held"))
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(hanging)
	before := programtest.StartWith(t, environment, "run", "--config", file, "--json")
	showing(t, before, "healthy", "hanging") // with an engine plan each: a check builds none
	require.NoError(t, before.Stop(syscall.SIGTERM))
	require.NoError(t, os.WriteFile(held, nil, 0o600))
	write(head)
	p := programtest.StartWith(t, environment, "run", "--config", file, "--json")
	showing(t, p, "healthy")
	reload := func(text string) {
		write(text)
		require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	}

	reload(hanging)
	p.Logged("being checked")
	for range 3 { // it is being checked still
		showing(t, p, "healthy")
	}
	reload(head + fmt.Sprintf(camera, "second", model))
	p.Logged("a later reload replaces one that has not ended")
	p.Logged(`"configuration changed" cameras=2 undisturbed=1`)
	showing(t, p, "healthy", "second")

	reload(hanging)
	require.Eventually(t, func() bool { return strings.Count(p.Stderr.String(), "being checked") == 2 }, programtest.Patience,
		20*time.Millisecond, "%s", p.Stderr)
	require.NoError(t, p.Stop(syscall.SIGTERM), "%s", p.Stderr)
	require.NotContains(t, p.Stderr.String(), "kept as it is")
}

// TestASecondaryNetworkThatHangs: while it is opened, the cameras start after ten seconds without its attributes, and objects have them
// once it is open. When a request hangs, it is opened again, and the program ends whatever hangs.
func TestASecondaryNetworkThatHangs(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	dir := t.TempDir()
	requests, openings, file := filepath.Join(dir, "requests"), filepath.Join(dir, "openings"), filepath.Join(dir, "edge-infer.yaml")
	environment = append(environment, "FAKE_TRT_REQUEST_HELD="+requests, "FAKE_TRT_OPENING_HELD="+openings)
	text := fmt.Sprintf("mqtt: {url: 'off'}\nengine: {backend: tensorrt}\nmodel: {path: %s}\ncascade:\n", model)
	text += fmt.Sprintf("- {name: colour, model: %s, min_size: 1, every: 100ms, batch: 1}\n", programtest.StandInClassifier(t))
	text += "cameras:\n- {name: gate, uri: 'demo?width=320&height=240&fps=20'}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(openings, nil, 0o600))
	p := programtest.StartWith(t, environment, "run", "--config", file, "--json")
	frame := func() string {
		f, more := p.Frame()
		require.True(t, more, "%s", p.Stderr)
		return fmt.Sprintf("%s", f.Detections)
	}
	const attribute = `"colour":{`

	for range 20 {
		require.NotContains(t, frame(), attribute)
	}
	p.Logged("a secondary network is still being opened, attributes are missing")
	require.NoError(t, os.Remove(openings))
	p.Logged(`"secondary network opened" cascade=colour`)
	for !strings.Contains(frame(), attribute) {
		continue
	}

	require.NoError(t, os.WriteFile(requests, nil, 0o600))
	p.Logged(`"secondary network hangs, attributes are not updated" cascade=colour`)
	require.Eventually(t, func() bool { return strings.Count(p.Stderr.String(), `"secondary network opened"`) == 2 }, programtest.Patience,
		20*time.Millisecond, "%s", p.Stderr)
	for range 20 {
		frame()
	}
	require.NoError(t, p.Stop(syscall.SIGTERM), "%s", p.Stderr)
}
