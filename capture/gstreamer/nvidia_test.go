package gstreamer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/decodertest"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// onNVIDIA runs a test in a process of its own with stand-ins for JetPack's plugins, libnvbufsurface and the CUDA driver.
func onNVIDIA(t *testing.T, test string, environment ...string) {
	needGStreamer(t)
	dir := t.TempDir()
	arguments := append(headerFlags(t), "testdata/nvidia.c", "-lgstbase-1.0", "-lgstvideo-1.0", "-lgstreamer-1.0", "-lgobject-2.0",
		"-lglib-2.0")
	_, err := fake.Compile(filepath.Join(dir, "libgstnvvideo4linux2.so"), append([]string{"-Wall", "-Werror"}, arguments...)...)
	require.NoError(t, err)
	surfaces, err := fake.Compile(filepath.Join(dir, "libnvbufsurface.so"), "-std=gnu11", "-Wall", "-Werror", "-fvisibility=hidden",
		"testdata/libnvbufsurface.c")
	require.NoError(t, err)
	driver, err := fake.Build(dir, 0)
	require.NoError(t, err)
	fake.Another(t, test, append([]string{
		"GST_PLUGIN_PATH=" + dir, "GST_REGISTRY=" + filepath.Join(dir, "registry"), SurfaceLibraryEnvironment + "=" + surfaces,
		cuda.LibraryEnvironment + "=" + driver, "FAKE_CUDA_LOG=" + filepath.Join(dir, "log"), "DISPLAY=localhost:10.0",
	}, environment...)...)
}

// TestHardwareDecoder: hardware decodes into system memory.
func TestHardwareDecoder(t *testing.T) { onNVIDIA(t, "TestChildHardwareDecoder") }

func TestChildHardwareDecoder(t *testing.T) {
	fake.Child(t)
	decodertest.Run(t, decodertest.Subject{Open: func(codec capture.Codec) (capture.Decoder, error) {
		return OpenDecoder(t.Context(), DecoderOptions{Codec: codec, Element: nvidia, LowLatency: true})
	}})
}

// TestNVMMDecoder: images stay in the decoder's memory, in rows or, as a Jetson's decoder writes them, in tiles.
func TestNVMMDecoder(t *testing.T) {
	for _, layout := range []string{"rows", "tiles"} {
		t.Run(layout, func(t *testing.T) { onNVIDIA(t, "TestChildNVMMDecoder", "FAKE_NVBUFSURFACE="+layout) })
	}
}

func TestChildNVMMDecoder(t *testing.T) {
	fake.Child(t)
	opened := 0
	open := func(codec capture.Codec) (capture.Decoder, error) {
		opened++
		return OpenNVMMDecoder(t.Context(), NVMMOptions{Codec: codec, MaxPixels: capture.DefaultMaxPixels})
	}
	decodertest.Run(t, decodertest.Subject{Open: open, Check: func(t *testing.T) {
		assert.Equal(t, calls(t, "NvBufSurfaceMapEglImage"), calls(t, "NvBufSurfaceUnMapEglImage"))
		assert.Equal(t, calls(t, "cuGraphicsEGLRegisterImage"), calls(t, "cuGraphicsUnregisterResource"))
		assert.Equal(t, calls(t, "cuMemAlloc_v2"), calls(t, "cuMemFree_v2"))
		assert.Equal(t, opened, calls(t, "cuDevicePrimaryCtxRetain"))
		assert.Equal(t, opened, calls(t, "cuDevicePrimaryCtxRelease_v2"))
	}})
	assert.Empty(t, os.Getenv("DISPLAY"), "EGL fails on the display of ssh -X")
	before := calls(t, "cuGraphicsEGLRegisterImage")
	v := decodertest.Load(t, "baseline")
	d, err := open(capture.H264)
	require.NoError(t, err)
	pool := newPool(t)
	for i := range v.Units {
		require.NoError(t, d.Submit(&v.Units[i]))
		require.True(t, d.(capture.BackgroundDecoder).Await(patience))
		f, _, err := d.Next(pool)
		require.NoError(t, err)
		f.Release()
	}
	require.NoError(t, d.Close())
	assert.LessOrEqual(t, calls(t, "cuGraphicsEGLRegisterImage")-before, 8, "once for each buffer")
}

// calls returns how often a function of the stand-ins was called.
func calls(t *testing.T, function string) int {
	log, err := os.ReadFile(os.Getenv("FAKE_CUDA_LOG"))
	require.NoError(t, err)
	count := 0
	for line := range bytes.Lines(log) {
		name, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if name == function {
			count++
		}
	}
	return count
}

// TestNVMMFailures: whatever fails gives an error with its reason, and nothing is left behind.
func TestNVMMFailures(t *testing.T) {
	for fault, want := range map[string]string{
		"FAKE_NVV4L2DECODER=open":                              "open: nvv4l2decoder: Cannot identify device '/dev/nvhost-nvdec'",
		"FAKE_NVBUFSURFACE=fail":                               "read: NVMM: NvBufSurfaceMapEglImage failed: is there an EGL display?",
		"FAKE_CUDA=fail=cuGraphicsEGLRegisterImage:999":        "(999)",
		"FAKE_CUDA=fail=cuGraphicsResourceGetMappedEglFrame:1": "read: NVMM: library.cuGraphicsResourceGetMappedEglFrame",
		SurfaceLibraryEnvironment + "=/nonexistent.so":         "open: no NVMM: /nonexistent.so: cannot open shared object file: No such file or directory",
		cuda.LibraryEnvironment + "=/nonexistent.so":           "open: NVMM: ",
		"GST_PLUGIN_PATH=":                                     "open: nvv4l2decoder is not installed",
	} {
		t.Run(fault, func(t *testing.T) { onNVIDIA(t, "TestChildNVMMFailure", fault, "WANT="+want) })
	}
}

func TestChildNVMMFailure(t *testing.T) {
	fake.Child(t)
	v := decodertest.Load(t, "baseline")
	var err error
	d, failed := OpenNVMMDecoder(t.Context(), NVMMOptions{Codec: capture.H264})
	if failed != nil {
		err = failed
	} else {
		require.NoError(t, d.Submit(&v.Units[0]))
		require.True(t, d.Await(patience))
		pool := &capture.Pool{}
		_, _, err = d.Next(pool)
		require.NoError(t, d.Close())
		assert.Zero(t, pool.Lent())
		require.NoError(t, pool.Close())
		assert.Equal(t, calls(t, "cuDevicePrimaryCtxRetain"), calls(t, "cuDevicePrimaryCtxRelease_v2"))
	}
	var typed *capture.Error
	require.ErrorAs(t, err, &typed)
	assert.NotErrorIs(t, err, capture.ErrImage)
	assert.ErrorContains(t, err, os.Getenv("WANT"))
}

// TestBrokenPlugin: GStreamer's registry has an element whose plugin cannot be loaded, because a library is missing or has no room for its
// static thread-local storage. GStreamer itself reports that a link has no source.
func TestBrokenPlugin(t *testing.T) {
	needGStreamer(t)
	dir := t.TempDir()
	needed := filepath.Join(dir, "libneeded.so")
	require.NoError(t, os.WriteFile(needed+".c", []byte("int needed;\n"), 0o600))
	_, err := fake.Compile(needed, needed+".c")
	require.NoError(t, err)
	arguments := append(headerFlags(t), "testdata/nvidia.c", "-lgstbase-1.0", "-lgstvideo-1.0", "-lgstreamer-1.0", "-lgobject-2.0",
		"-lglib-2.0", "-L"+dir, "-Wl,--no-as-needed", "-l:libneeded.so", "-Wl,-rpath,"+dir)
	_, err = fake.Compile(filepath.Join(dir, "libgstnvvideo4linux2.so"), arguments...)
	require.NoError(t, err)
	environment := []string{"GST_PLUGIN_PATH=" + dir, "GST_REGISTRY=" + filepath.Join(dir, "registry")}
	fake.Another(t, "TestChildWholePlugin", environment...)
	require.NoError(t, os.Remove(needed))
	fake.Another(t, "TestChildBrokenPlugin", environment...)
}

func TestChildWholePlugin(t *testing.T) {
	fake.Child(t)
	assert.True(t, HasElement(nvidia))
}

func TestChildBrokenPlugin(t *testing.T) {
	fake.Child(t)
	const want = "open: nvv4l2decoder cannot be loaded: libneeded.so: cannot open shared object file: No such file or directory " +
		"(ldd shows which libraries its plugin needs)"
	_, err := OpenDecoder(t.Context(), DecoderOptions{Codec: capture.H264, Element: nvidia})
	require.EqualError(t, err, want)
	_, err = OpenNVMMDecoder(t.Context(), NVMMOptions{Codec: capture.H264})
	require.EqualError(t, err, want)
	for _, description := range []string{"nvv4l2decoder ! appsink", "videotestsrc !nvv4l2decoder disable-dpb=true ! appsink"} {
		_, err = Open(t.Context(), description, Options{})
		require.EqualError(t, err, want)
	}
}

// TestEGLDeclarations: nvbufsurface.h has the layout of FFmpeg's headers, which Debian packages as libffmpeg-nvenc-dev.
func TestEGLDeclarations(t *testing.T) {
	output, err := exec.Command(testtool.Program(t, "cc"), append(testtool.Flags(t, "--cflags", "ffnvcodec"), "-std=gnu11",
		"-fsyntax-only", "testdata/egl.c")...).CombinedOutput()
	require.NoError(t, err, "%s", output)
}
