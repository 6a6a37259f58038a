package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source/argustest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
)

// cameraCommand is the argument that makes the test program a camera's process.
const cameraCommand = "read-camera"

func serveCamera() {
	out, err := isolate.Answers()
	if err == nil {
		err = ServeCamera(context.Background(), os.Stdin, out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// argus prepares the environment of cameras and returns a daemon that does not run yet.
func argus(t *testing.T) *argustest.Daemon {
	dir := buildCSIPlugin(t)
	d := &argustest.Daemon{Path: filepath.Join(t.TempDir(), "argus_socket")}
	t.Setenv("GST_PLUGIN_PATH", dir)
	t.Setenv("GST_REGISTRY", filepath.Join(dir, "registry"))
	t.Setenv(argusEnvironment, d.Path)
	t.Setenv("FAKE_ARGUS_SOCKET", d.Path)
	t.Cleanup(d.Stop)
	return d
}

// runningArgus is argus with the daemon running.
func runningArgus(t *testing.T) *argustest.Daemon {
	d := argus(t)
	require.NoError(t, d.Start())
	return d
}

var childProgram = []string{os.Args[0], cameraCommand}

// isolated are the options of a camera with a process of its own.
func isolated() capture.Options {
	return capture.Options{EveryFrame: true, Child: childProgram, OpenTimeout: patience, ReadTimeout: patience}
}

func TestIsolatedCamera(t *testing.T) {
	runningArgus(t)
	source, err := Open(t.Context(), "csi://0?width=640&height=480&fps=120", isolated())
	require.NoError(t, err)
	assert.True(t, source.Live())
	assert.InDelta(t, 120, source.FPS(), 0)
	pool := &capture.Pool{}
	defer pool.Close()
	for n := range 50 {
		f, err := source.Next(pool)
		require.NoError(t, err)
		assert.Equal(t, engine.NV12, f.Format)
		assert.Equal(t, size{640, 480}, size{f.Width, f.Height})
		assert.Equal(t, uint64(n), f.Seq)
		assert.Equal(t, byte(n), f.Data[0])
		assert.Equal(t, byte(n), f.Data[len(f.Data)-1])
		assert.LessOrEqual(t, f.Captured, capture.Monotonic())
		f.Release()
	}
	require.NoError(t, source.Close())
	require.NoError(t, source.Close())
}

// TestIsolatedCameraTakesTheNewest: a slow reader of a live camera gets new images, and the others count as dropped.
func TestIsolatedCameraTakesTheNewest(t *testing.T) {
	images, file, err := newSharedImages(64 * 48 * 3 / 2)
	require.NoError(t, err)
	defer images.close()
	writer, err := mapSharedImages(file)
	require.NoError(t, err)
	defer writer.close()
	require.NoError(t, file.Close())
	put := func() error {
		f, err := writer.Frame(engine.NV12, 64, 48)
		if err == nil {
			writer.put(&f)
		}
		return err
	}
	for range sharedSlots {
		require.NoError(t, put())
	}
	require.ErrorIs(t, put(), capture.ErrNoBuffer)
	_, err = writer.Frame(engine.NV12, 640, 480)
	require.ErrorIs(t, err, capture.ErrFormat)
	number := func(slot int) uint64 {
		f, err := images.image(slot)
		require.NoError(t, err)
		return f.Seq
	}
	oldest := images.take(false)
	assert.Equal(t, uint64(0), number(oldest))
	images.free(oldest)
	newest := images.take(true)
	assert.Equal(t, uint64(sharedSlots-1), number(newest))
	images.free(newest)
	assert.Equal(t, -1, images.take(true), "the older ones were freed")
	require.NoError(t, put())
	images.header(images.take(true)).width = 1 << 30
	_, err = images.image(images.take(true))
	require.ErrorIs(t, err, capture.ErrImage)
}

// TestIsolatedCameraErrors: the cause passes from the camera's process, and what the plugin prints does not.
func TestIsolatedCameraErrors(t *testing.T) {
	runningArgus(t)
	_, err := Open(t.Context(), "csi://1", isolated())
	require.ErrorIs(t, err, capture.ErrUnavailable)
	require.EqualError(t, err, "open csi://1: nvarguscamerasrc: Failed to create CaptureSession: nvargus-daemon: sensor 1 is in use "+
		"(check the ribbon cable, and sudo systemctl restart nvargus-daemon)")

	source, err := Open(t.Context(), "csi://2", isolated())
	require.NoError(t, err)
	pool := &capture.Pool{}
	defer pool.Close()
	for range 5 {
		f, err := source.Next(pool)
		require.NoError(t, err)
		f.Release()
	}
	_, err = source.Next(pool)
	require.ErrorIs(t, err, capture.ErrUnavailable)
	require.EqualError(t, err, "read csi://2: nvarguscamerasrc: TIMEOUT: Argus Error Status")
	require.NoError(t, source.Close())

	options := isolated()
	options.Child = []string{"/none"}
	_, err = Open(t.Context(), "csi://0", options)
	require.ErrorIs(t, err, capture.ErrUnavailable)
	require.ErrorContains(t, err, "the camera's process did not start: fork/exec /none: no such file or directory")
}

// TestIsolatedCameraWaitsForTheDaemon: after the boot of a machine nvargus-daemon opens its socket some time after it has started.
func TestIsolatedCameraWaitsForTheDaemon(t *testing.T) {
	d := argus(t)
	options := isolated()
	options.OpenTimeout = time.Millisecond
	_, err := Open(t.Context(), "csi://0", options)
	require.EqualError(t, err, "open csi://0: nvargus-daemon is not running "+
		"(sudo systemctl restart nvargus-daemon; in a container, mount /tmp/argus_socket)")
	require.NoError(t, os.WriteFile(d.Path, nil, 0o600)) // of a daemon that has ended
	_, err = Open(t.Context(), "csi://0", options)
	require.ErrorContains(t, err, "nvargus-daemon does not answer")
	go func() {
		time.Sleep(2 * daemonPause)
		_ = os.Remove(d.Path)
		assert.NoError(t, d.Start())
	}()
	source, err := Open(t.Context(), "csi://0", isolated())
	require.NoError(t, err)
	require.NoError(t, source.Close())
}

// running starts a camera with a process of its own and a Camera that opens it again.
func running(t *testing.T, uri string, stall time.Duration) *watched {
	return watch(t, &capture.Camera{Open: Open, URI: uri, Retry: quick, StallTimeout: stall, OpenTimeout: patience, Child: childProgram})
}

// TestIsolatedCameraComesBack after every fault, while the camera of another sensor loses nothing.
func TestIsolatedCameraComesBack(t *testing.T) {
	runningArgus(t)
	other := running(t, "csi://0?width=64&height=48", patience)
	other.waitForChange("that it runs", state(capture.Running))
	for uri, want := range map[string]struct {
		reason string
		stall  time.Duration
	}{
		"csi://2?width=64&height=48": {"nvarguscamerasrc: TIMEOUT: Argus Error Status", patience},
		"csi://3?width=64&height=48": {"no image for 300ms", 300 * time.Millisecond},
		"csi://4?width=64&height=48": {"no image for 300ms", 300 * time.Millisecond}, // hangs when it is stopped
		"csi://5?width=64&height=48": {"the same image for 3s", 3 * time.Second},
	} {
		c := running(t, uri, want.stall)
		for range 3 {
			c.waitForChange("that it runs", state(capture.Running))
			found := c.waitForChange("that it is lost", state(capture.Lost))
			assert.Equal(t, want.reason, found.Reason, uri)
		}
		require.NoError(t, c.Close())
	}
	now := other.Stats()
	assert.Equal(t, capture.Running, now.State)
	assert.Zero(t, now.Reconnects)
	require.NoError(t, other.Close())
}

// TestIsolatedCameraAfterTheDaemonRestarts: the plugin of a process stays connected to the daemon that it found; a new process finds the
// new one.
func TestIsolatedCameraAfterTheDaemonRestarts(t *testing.T) {
	d := runningArgus(t)
	c := running(t, "csi://0?width=64&height=48", patience)
	for range 3 {
		c.waitForChange("that it runs", state(capture.Running))
		d.Stop()
		require.NoError(t, d.Start())
		c.waitForChange("that it is lost", state(capture.Lost))
	}
	c.waitForChange("that it runs", state(capture.Running))
	require.NoError(t, c.Close())
}

// children returns the processes of this one.
func children(t *testing.T) (pids []int) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestIsolatedCameraIsKilled many times: each time the camera comes back, and no process, descriptor or memory remains.
func TestIsolatedCameraIsKilled(t *testing.T) {
	runningArgus(t)
	const kills = 20
	c := running(t, "csi://0?width=64&height=48", patience)
	c.waitForChange("that it runs", state(capture.Running))
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	before := descriptors()
	for range kills {
		pids := children(t)
		require.Len(t, pids, 1)
		require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
		found := c.waitForChange("that it is lost", state(capture.Lost))
		assert.Equal(t, "the camera's process ended: it crashes: killed, as when memory runs out", found.Reason)
		c.waitForChange("that it runs", state(capture.Running))
	}
	assert.InDelta(t, before, descriptors(), 4)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return len(children(t)) == 0 }, patience, 10*time.Millisecond)
}
