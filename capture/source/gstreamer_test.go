package source

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

func TestPipelines(t *testing.T) {
	const head = "protocols=tcp latency=0 ! application/x-rtp,media=video ! decodebin ! "
	assert.Equal(t, `rtspsrc location="rtsp://u:a\"b\\c@cam/s" `+head+
		`videoconvert ! video/x-raw,format=NV12 ! appsink max-buffers=1 drop=true sync=false`,
		rtspPipeline(`rtsp://u:a"b\c@cam/s`, false, false))
	assert.Equal(t, `rtspsrc location="rtsp://cam/s" `+head+
		`nvvidconv ! video/x-raw,format=NV12 ! appsink max-buffers=4 drop=false sync=false`,
		rtspPipeline("rtsp://cam/s", true, true))
	u, err := capture.ParseURI("csi://1?width=1920&height=1080&fps=29.97&mode=2&flip=6")
	require.NoError(t, err)
	assert.Equal(t, "nvarguscamerasrc sensor-id=1 sensor-mode=2 ! video/x-raw(memory:NVMM),"+
		"width=1920,height=1080,framerate=29970/1000,format=NV12 ! nvvidconv flip-method=6 ! "+
		"video/x-raw,format=NV12 ! appsink max-buffers=1 drop=true sync=false", csiPipeline(u, false))
	u, err = capture.ParseURI("csi://0")
	require.NoError(t, err)
	assert.Equal(t, "nvarguscamerasrc sensor-id=0 ! video/x-raw(memory:NVMM),width=1280,height=720,framerate=30/1,format=NV12 ! "+
		"nvvidconv flip-method=0 ! video/x-raw,format=NV12 ! appsink max-buffers=1 drop=true sync=false", csiPipeline(u, false))
}

func TestCSIWithoutJetson(t *testing.T) {
	t.Setenv("GST_PLUGIN_PATH", "")
	t.Setenv("GST_PLUGIN_SYSTEM_PATH", t.TempDir())
	_, err := Open(t.Context(), "csi://0", capture.Options{})
	require.ErrorIs(t, err, capture.ErrNotFound)
	assert.EqualError(t, err, "open csi://0: CSI cameras need GStreamer's nvarguscamerasrc, which is not installed "+
		"(it is part of JetPack; elsewhere name a /dev/videoN, or use --camera demo)")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, pluginCSI), nil, 0o600))
	t.Setenv("GST_PLUGIN_PATH", dir)
	assert.NotEmpty(t, FindPlugin(pluginCSI))
}
