package daemon

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/nvdec"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestDeviceImagesAreCopiedOnDemand: of images that NVDEC's stand-in has decoded into the GPU's memory, no byte is copied to the host while
// nobody looks and no events are stored; an image for the page is.
func TestDeviceImagesAreCopiedOnDemand(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	const width, height = 384, 288
	server := &rtsptest.Server{Files: []string{beltVideoOf(t, width, height)}}
	require.NoError(t, server.Start())
	defer server.Close()
	p := programtest.StartWith(t, append(environment, nvdec.LibraryEnvironment+"="+programtest.StandInNVDEC(t), "EDGE_INFER_EVENTS=off"),
		"--camera", "gate="+server.URL(0), "--model", model, "--engine", "tensorrt", "--mqtt", "off", "--web", "127.0.0.1:0")
	page := p.PrintedAfter("web page at ")
	type state struct {
		Cameras []struct {
			Capture struct {
				Decoder  string
				Captured uint64
				Copied   int64 `json:"copied_bytes"`
			}
		}
	}
	status := func() (s state) {
		code, text := programtest.Get(t, programtest.Visitor(t), page+"api/status")
		require.Equal(t, http.StatusOK, code)
		require.NoError(t, json.Unmarshal(text, &s))
		require.Len(t, s.Cameras, 1)
		return s
	}
	require.Eventually(t, func() bool { return status().Cameras[0].Capture.Captured > 50 }, programtest.Patience, 50*time.Millisecond)
	now := status().Cameras[0].Capture
	require.Equal(t, "NVDEC of GPU 0", now.Decoder)
	require.Zero(t, now.Copied)

	code, _ := programtest.Get(t, programtest.Visitor(t), page+"api/cameras/gate/image.jpg")
	require.Equal(t, http.StatusOK, code)
	var copied int64
	require.Eventually(t, func() bool { // the status is made at intervals
		copied = status().Cameras[0].Capture.Copied
		return copied > 0
	}, programtest.Patience, 50*time.Millisecond)
	require.Zero(t, copied%(width*height*3/2), "%d bytes", copied)
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
