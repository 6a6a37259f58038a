package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source/argustest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// csiChild marks the process that loads the stand-in for JetPack's plugins: GStreamer looks for plugins once per process.
const csiChild = "EDGE_INFER_TEST_CSI"

// TestCSI runs the TestCSICamera tests in a process of their own, with a stand-in for nvarguscamerasrc.
func TestCSI(t *testing.T) {
	t.Parallel()
	dir := buildCSIPlugin(t)
	child := exec.Command(os.Args[0], "-test.run=^TestCSICamera", "-test.v", "-test.timeout=5m")
	child.Env = append(os.Environ(), csiChild+"=1", "GST_PLUGIN_PATH="+dir, "GST_REGISTRY="+filepath.Join(dir, "registry"))
	output, err := child.CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Contains(t, string(output), "--- PASS: TestCSICamera")
}

// buildCSIPlugin compiles the stand-in and returns its directory.
func buildCSIPlugin(t *testing.T) string {
	dir := t.TempDir()
	_, err := argustest.BuildPlugin(dir, testtool.Flags(t, "--cflags", "--libs", "gstreamer-base-1.0")...)
	require.NoError(t, err)
	return dir
}

func inCSIChild(t *testing.T) {
	if os.Getenv(csiChild) == "" {
		t.Skip("runs in a child of TestCSI")
	}
}

func TestCSICameraImages(t *testing.T) {
	inCSIChild(t)
	source, err := Open(t.Context(), "csi://0?width=640&height=480&fps=120", capture.Options{EveryFrame: true})
	require.NoError(t, err)
	assert.True(t, source.Live())
	assert.InDelta(t, 120, source.FPS(), 0)
	pool := &capture.Pool{}
	defer pool.Close()
	for n := range 20 {
		f, err := source.Next(pool)
		require.NoError(t, err)
		assert.Equal(t, engine.NV12, f.Format)
		assert.Equal(t, size{640, 480}, size{f.Width, f.Height})
		assert.Equal(t, byte(n), f.Data[0])
		f.Release()
	}
	require.NoError(t, source.Close())
}

// The error of a CSI camera has the cause that Argus reports.
func TestCSICameraErrors(t *testing.T) {
	inCSIChild(t)
	const hint = " (check the ribbon cable, and sudo systemctl restart nvargus-daemon)"
	_, err := Open(t.Context(), "csi://1", capture.Options{})
	require.ErrorIs(t, err, capture.ErrUnavailable)
	require.EqualError(t, err, "open csi://1: nvarguscamerasrc: Failed to create CaptureSession: nvargus-daemon: sensor 1 is in use"+hint)

	source, err := Open(t.Context(), "csi://2", capture.Options{EveryFrame: true})
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
}

// TestCSIHint: a Thor has cameras that Argus does not read.
func TestCSIHint(t *testing.T) {
	assert.Equal(t, argusHint, csiHint(filepath.Join(t.TempDir(), "none")))
	assert.Equal(t, argusHint+"; "+siplHint, csiHint(t.TempDir()))
}

// A camera with an error after the first image is opened again, as is one that falls silent.
func TestCSICameraIsOpenedAgain(t *testing.T) {
	inCSIChild(t)
	for uri, want := range map[string]struct {
		reason string
		stall  time.Duration
	}{
		"csi://2": {"nvarguscamerasrc: TIMEOUT: Argus Error Status", patience}, "csi://3": {"no image for 300ms", 300 * time.Millisecond},
	} {
		c := watch(t, &capture.Camera{Open: Open, URI: uri, Retry: quick, StallTimeout: want.stall})
		for range 3 {
			c.waitForChange("that it runs", state(capture.Running))
			found := c.waitForChange("that it is lost", state(capture.Lost))
			assert.Equal(t, want.reason, found.Reason)
		}
		require.NoError(t, c.Close())
	}
}

// Images in the memory of the video engine are refused with what to do.
func TestCSICameraDeviceMemory(t *testing.T) {
	inCSIChild(t)
	const source = "gst:nvarguscamerasrc ! video/x-raw(memory:NVMM),width=640,height=480,framerate=30/1 ! appsink"
	for _, end := range []string{"", " caps=video/x-raw(memory:NVMM)"} {
		_, err := Open(t.Context(), source+end, capture.Options{})
		require.ErrorIs(t, err, capture.ErrFormat)
		assert.Contains(t, err.Error(), "the pipeline ends in pixel format NV12 (memory:")
		assert.Contains(t, err.Error(), "(put 'nvvidconv ! video/x-raw,format=NV12' before the appsink)")
	}
}

// TestCSICameraThatHangs: a driver that does not return from stop keeps neither the pull nor the camera. It is the last test of its
// process, whose threads it leaves behind.
func TestCSICameraThatHangs(t *testing.T) {
	inCSIChild(t)
	c := &capture.Camera{Open: Open, URI: "csi://4", Retry: quick, StallTimeout: 300 * time.Millisecond}
	changed := make(chan capture.Stats, 1000)
	c.OnChange = func(s capture.Stats) { changed <- s }
	result := make(chan error, 1)
	go func() { result <- c.Run(t.Context()) }()
	for s := range changed {
		if s.State == capture.Hung {
			assert.Equal(t, uint64(8), s.Abandoned)
			break
		}
	}
	require.NoError(t, c.Close())
	require.NoError(t, <-result)
}
