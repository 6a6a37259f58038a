package source

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/nvdec"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

// TestNVDECFails: when the GPU's decoder fails, software goes on with the same connection to the camera. The stand-in for the decoder has
// no FFmpeg here and fails with every real video.
func TestNVDECFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	driver, err := fake.Build(dir, 0)
	require.NoError(t, err)
	library, err := fake.Compile(filepath.Join(dir, "libnvcuvid.so.1"), "-std=gnu11", "-fvisibility=hidden", "-DWITHOUT_FFMPEG",
		"../nvdec/testdata/libnvcuvid.c",
		driver)
	require.NoError(t, err)
	fake.Another(t, "TestChildNVDECFails", cuda.LibraryEnvironment+"="+driver, nvdec.LibraryEnvironment+"="+library)
}

func TestChildNVDECFails(t *testing.T) {
	fake.Child(t)
	server := &rtsptest.Server{Files: []string{barcodeVideo(t, "stream.ts", 1500, 160, 120, 50)}}
	require.NoError(t, server.Start())
	defer server.Close()
	c := watch(t, &capture.Camera{Open: Open, URI: server.URL(0), Retry: quick})
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(5)
	stats := c.Stats()
	const failure = "NVDEC: read an access unit: invalid value (1)"
	assert.Equal(t, "avdec_h264 of GStreamer ("+failure+"; nvv4l2decoder is not installed; GStreamer has no hardware decoder for H.264)",
		stats.Decoder)
	assert.Equal(t, uint64(1), stats.Damaged)
	assert.Zero(t, stats.Reconnects)
	assert.Equal(t, 1, server.Stats(0).Connections)
	require.NoError(t, c.Close())

	soft, err := Open(t.Context(), server.URL(0)+"#decoder=software", capture.Options{})
	require.NoError(t, err)
	assert.Equal(t, "avdec_h264 of GStreamer", soft.(*stream).Decoder())
	require.NoError(t, soft.Close())
	only, err := Open(t.Context(), server.URL(0)+"#decoder=nvdec", capture.Options{})
	require.NoError(t, err)
	defer only.Close()
	assert.Equal(t, "NVDEC of GPU 0", only.(*stream).Decoder())
	var pool capture.Pool
	defer pool.Close()
	_, err = only.Next(&pool)
	require.ErrorIs(t, err, capture.ErrUnavailable)
	require.NotErrorIs(t, err, capture.ErrImage)
	assert.ErrorContains(t, err, failure+" (choose another decoder, or none)")
}

// TestNoNVDEC: without the library the reason is reported, and decoder=nvdec is an error.
func TestNoNVDEC(t *testing.T) {
	t.Setenv(nvdec.LibraryEnvironment, filepath.Join(t.TempDir(), "none.so"))
	server := &rtsptest.Server{Files: []string{barcodeVideo(t, "stream.ts", 100, 160, 120, 50)}}
	require.NoError(t, server.Start())
	defer server.Close()
	opened, err := Open(t.Context(), server.URL(0), capture.Options{})
	require.NoError(t, err)
	assert.Contains(t, opened.(*stream).Decoder(), "avdec_h264 of GStreamer (no NVDEC: ")
	require.NoError(t, opened.Close())
	_, err = Open(t.Context(), server.URL(0)+"#decoder=nvdec", capture.Options{})
	require.ErrorIs(t, err, capture.ErrUnavailable)
	assert.ErrorContains(t, err, "no NVDEC: ")
}
