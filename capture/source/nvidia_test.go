package source

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/gstreamer"
	"github.com/edge-infer/edge-infer/capture/nvdec"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// decoderFault is the environment variable with what the stand-in for nvv4l2decoder does wrong.
const decoderFault = "FAKE_NVV4L2DECODER"

// TestJetsonDecoders: an Orin's decoders are tried in order, and each that fails while it runs is replaced by the next one, on the same
// connection to the camera. Stand-ins take the place of JetPack's plugins and libraries.
func TestJetsonDecoders(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long, and its code is in C or in other processes")
	}
	dir := t.TempDir()
	_, err := fake.Compile(filepath.Join(dir, pluginDecoder), append([]string{"../gstreamer/testdata/nvidia.c"},
		testtool.Flags(t, "--cflags", "--libs", "gstreamer-base-1.0", "gstreamer-video-1.0")...)...)
	require.NoError(t, err)
	surfaces, err := fake.Compile(filepath.Join(dir, "libnvbufsurface.so"), "-std=gnu11", "-fvisibility=hidden",
		"../gstreamer/testdata/libnvbufsurface.c")
	require.NoError(t, err)
	driver, err := fake.Build(dir, 0)
	require.NoError(t, err)
	for _, fault := range []string{"", "open", "fail=5", "fail=0", "hang=5", "hang=0"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			fake.Another(t, "TestChildJetsonDecoders", "GST_PLUGIN_PATH="+dir, "GST_REGISTRY="+filepath.Join(dir, "registry"),
				gstreamer.SurfaceLibraryEnvironment+"="+surfaces, cuda.LibraryEnvironment+"="+driver, nvdec.LibraryEnvironment+"=/nonexistent.so",
				decoderFault+"="+fault)
		})
	}
}

func TestChildJetsonDecoders(t *testing.T) {
	fake.Child(t)
	fault := os.Getenv(decoderFault)
	server := &rtsptest.Server{Files: []string{barcodeVideo(t, "stream.ts", 1500, 160, 120, 50)}}
	require.NoError(t, server.Start())
	defer server.Close()
	var log bytes.Buffer
	c := watch(t, &capture.Camera{Open: Open, URI: server.URL(0), Retry: quick, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c.moves(40)
	stats := c.Stats()
	const none = "no NVDEC: /nonexistent.so: cannot open shared object file: No such file or directory"
	want := map[string]string{
		"":     "NVMM (" + none + ")",
		"open": "avdec_h264 of GStreamer (" + none + "; nvv4l2decoder: Cannot identify device '/dev/nvhost-nvdec')",
		"fail": "avdec_h264 of GStreamer (" + none + "; NVMM: nvv4l2decoder: Video decoder gave an error: code 66; " +
			"nvv4l2decoder: Video decoder gave an error: code 66)",
		"hang": "avdec_h264 of GStreamer (" + none + "; NVMM: the decoder gave no image for WINDOW; " +
			"nvv4l2decoder: the decoder gave no image for WINDOW)",
	}
	kind, _, _ := strings.Cut(fault, "=")
	// Seconds of the stall time-out, or of that for the first image, if a busy machine has shown none before.
	decoder := regexp.MustCompile(`no image for [12]s`).ReplaceAllString(stats.Decoder, "no image for WINDOW")
	assert.Equal(t, want[kind], decoder)
	assert.Equal(t, 1, server.Stats(0).Connections)
	assert.Zero(t, stats.Reconnects)
	if fault == "" {
		assert.Zero(t, stats.Damaged)
		assert.NotZero(t, stats.CopiedBytes, "of the test, which reads each image")
	}
	require.NoError(t, c.Close())
	// A decoder that cannot be opened is not one that has been replaced.
	replaced := map[string]int{"fail": 2, "hang": 2}[kind]
	assert.Equal(t, replaced, strings.Count(log.String(), `msg="decoder replaced"`), &log)
	if replaced > 0 {
		assert.Regexp(t, `msg="decoder replaced" camera=.* decoder="avdec_h264 of GStreamer \(`, log.String())
	}
	if kind == "hang" {
		return
	}
	for name, wanted := range map[string]string{
		"nvmm": "NVMM", "hardware": "nvv4l2decoder of GStreamer",
		"software": "avdec_h264 of GStreamer",
	} {
		source, err := Open(t.Context(), server.URL(0)+"#latency=low&decoder="+name, capture.Options{})
		if fault == "open" && name != "software" {
			require.ErrorIs(t, err, capture.ErrUnavailable)
			assert.ErrorContains(t, err, ": nvv4l2decoder: Cannot identify device '/dev/nvhost-nvdec' (choose another decoder, or none)")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, wanted, source.(*stream).Decoder())
		require.NoError(t, source.Close())
	}
}
