package daemon

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/control"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/outputs"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/internal/testtool"
	"github.com/edge-infer/edge-infer/mqtt/spool"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// TestRemoteRestartsAreFew: one that comes too soon after the start is refused, and says so on the error topic.
func TestRemoteRestartsAreFew(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	received := programtest.Subscribe(t, port, "edge-infer/gate/#")
	p := programtest.Start(t, "--camera", "demo?fps=5&width=320&height=240", "--mqtt", fmt.Sprintf("127.0.0.1:%d", port), "--name",
		"gate", "--json")
	programtest.Until(t, received, "gate/available online")
	programtest.Until(t, received, "cam0/detections")
	require.NoError(t, exec.Command(testtool.Program(t, "mosquitto_pub"), "-p", fmt.Sprint(port), "-t", "edge-infer/gate/restart/set", "-m",
		"PRESS").Run())
	programtest.Until(t, received, "the next restart is possible in ")
	programtest.Until(t, received, "cam0/detections")
	require.NoError(t, p.Stop(syscall.SIGTERM))
	require.NotContains(t, p.Stderr.String(), "restarting")
}

// TestARemoteRestartIsLookedAtBefore: one that would fail does not come about.
func TestARemoteRestartIsLookedAtBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	const sound = "mqtt: {url: 'off'}\ndetect: {track: false}\ncameras: [{name: belt, uri: demo}]\n"
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(sound)
	d := &Daemon{Settings: config.Sources{File: path}}
	c, err := d.load()
	require.NoError(t, err)
	r := &control.Control{
		Load: d.load, Fleet: standing(site.Resolve(c, nil)), Outputs: &outputs.Outputs{}, Started: time.Now().Add(-time.Hour),
		Logger: slog.New(slog.DiscardHandler),
	}
	r.Begin(c, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	r.End = cancel
	r.Ended = ctx.Done()

	write(sound + "web: {listen: '127.0.0.1:0', token_file: /none}\n")
	require.EqualError(t, r.Restart(),
		"web token: open /none: no such file or directory (web.token_file names a file that this user can read)")
	write("cameras: [")
	require.ErrorContains(t, r.Restart(), "edge-infer.yaml line 1")
	require.NoError(t, context.Cause(ctx))
	write(sound)
	require.NoError(t, r.Restart())
	require.ErrorIs(t, context.Cause(ctx), ErrRestart)
	r.Started = time.Now()
	require.ErrorContains(t, r.Restart(), "the next restart is possible in ")
}

// standing is a fleet that nothing changes.
type standing site.Site

func (s standing) Site() site.Site { return site.Site(s) }

func (standing) SetCamera(site.Site, string, bool) error { return nil }

func (standing) Apply(context.Context, site.Site) (int, error) { return 0, nil }

func (standing) Names(*site.Group) zone.Names { return zone.Names{} }

// TestAnOutputThatCannotBeOpenedIsTheError: also with JSON lines, and what was open by then is closed in order.
func TestAnOutputThatCannotBeOpenedIsTheError(t *testing.T) {
	t.Parallel()
	taken := programtest.FreePort(t)
	stop := programtest.Mosquitto(t, taken)
	defer stop()
	received := programtest.Subscribe(t, taken, "edge-infer/#")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, test := range []struct{ flags, want string }{
		{fmt.Sprintf("--web 127.0.0.1:%d", taken), "address already in use"},
		{"--web 127.0.0.1:0 --web-token-file /none", "web token: open /none"},
		{fmt.Sprintf("--mqtt embedded --mqtt-listen 127.0.0.1:%d", taken), "address already in use"},
	} {
		arguments := append([]string{"--camera", "demo", "--json", "--name", "gate", "--mqtt", fmt.Sprintf("127.0.0.1:%d", taken)},
			strings.Fields(test.flags)...)
		c := programtest.Command(t, arguments...)
		output, err := c.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 1, c.ProcessState.ExitCode(), string(output))
		require.Contains(t, string(output), test.want)
		require.NotContains(t, string(output), "panic")
		require.Equal(t, 1, strings.Count(string(output), "edge-infer: "), string(output))
	}
	for len(received) > 0 {
		require.NotContains(t, <-received, "offline", "no will of a client that was not closed")
	}
}

// TestWhatIsOpenIsClosedBesideWhatCannotBe: the embedded broker has let go of its port, and the client of its queue, where the page's
// address is taken. It runs in this process, because the end of one of its own would let go of everything.
func TestWhatIsOpenIsClosedBesideWhatCannotBe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir, broker := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	path, queue := filepath.Join(dir, "edge-infer.yaml"), filepath.Join(dir, "spool")
	text := fmt.Sprintf("name: gate\nmqtt: {url: embedded, listen: '%s', spool: %s}\nweb: {listen: '%s'}\n", broker, queue, taken.Addr()) +
		"engine: {backend: onnxruntime=cpu}\ncameras: [{name: belt, uri: 'demo?width=160&height=120&fps=5'}]\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	for _, asJSON := range []bool{false, true} {
		var said bytes.Buffer
		d := &Daemon{
			Settings: config.Sources{File: path, Environment: func(string) (string, bool) { return "", false }}, JSON: asJSON,
			Stdout: &said, Stderr: &said,
		}
		require.ErrorContains(t, d.Run(t.Context()), "address already in use")
		require.Eventually(t, func() bool { // an outgoing connection of another test may have it for a while
			listener, err := net.Listen("tcp", broker)
			return err == nil && listener.Close() == nil
		}, programtest.Patience, 10*time.Millisecond, "the broker's port")
		events := &spool.Spool{Config: spool.Config{Directory: queue}, Logger: slog.New(slog.DiscardHandler), Notify: func() {}}
		require.NoError(t, events.Open(), "the client's queue")
		require.NoError(t, events.Close())
	}
}
