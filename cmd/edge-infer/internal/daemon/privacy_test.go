package daemon

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage/jpegtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// TestAPrivateCameraShowsNothing: every image that a running daemon gives away of a camera that is hidden as a whole is a mosaic, and its
// packets stay inside: clips are made of such images. The camera beside it is shown as it is.
func TestAPrivateCameraShowsNothing(t *testing.T) {
	t.Parallel()
	server := &rtsptest.Server{Files: []string{beltVideo(t)}, Parameters: rtsptest.ParametersInSDP}
	require.NoError(t, server.Start())
	defer server.Close()
	state, port := t.TempDir(), programtest.FreePort(t)
	file := filepath.Join(state, "edge-infer.yaml")
	const private = ", privacy: {regions: [[{x: 0, y: 0}, {x: 1, y: 0}, {x: 1, y: 1}, {x: 0, y: 1}]]}"
	write := func(open string) {
		require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(`name: site
model: {path: demo}
mqtt: {url: mqtt://127.0.0.1:%d}
web: {listen: 127.0.0.1:0}
clips: {enabled: true, before: 1s, after: 1s}
cameras:
  - {name: open, uri: %[2]q%[3]s}
  - {name: private, uri: %[2]q%[4]s}
`, port, server.URL(0), open, private)), 0o600))
	}
	write("")
	kill := programtest.Mosquitto(t, port)
	defer kill()
	p := programtest.StartWith(t, []string{"STATE_DIRECTORY=" + state}, "--config", file)
	page := p.PrintedAfter("web page at ")
	for _, camera := range []string{"open", "private"} {
		images := webImages(t, page, camera)
		for topic, image := range mqttImages(t, port, camera) {
			images["MQTT "+topic] = image
		}
		images["clip"] = clipImage(t, page, camera)
		require.Equal(t, camera == "open", hasVideo(t, page, camera), "live video")
		for name, image := range images {
			contrast := jpegtest.Contrast(t, image, jpegtest.Size(t, image))
			t.Logf("%s, %s: %.2f", camera, name, contrast)
			bound := 1.0
			if strings.Contains(name, "/snapshot/") || name == "crop" || name == "thumbnail.jpg" {
				bound = 2 // the edges of the mosaic's cells are a larger part of a crop
			}
			if camera == "private" {
				require.Less(t, contrast, bound, name)
			} else {
				require.Greater(t, contrast, bound, name)
			}
		}
	}

	write(private)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool {
		code, image := programtest.Get(t, programtest.Visitor(t), page+"api/cameras/open/image.jpg")
		return code == http.StatusOK && jpegtest.Contrast(t, image, jpegtest.Size(t, image)) < 1
	}, programtest.Patience, 100*time.Millisecond, "a reload hides a camera")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// webImages returns the images of a camera that the web server gives away.
func webImages(t *testing.T, page, camera string) map[string][]byte {
	visitor := programtest.Visitor(t)
	images := map[string][]byte{}
	get := func(path string) bool {
		code, data := programtest.Get(t, visitor, page+strings.TrimPrefix(path, "/"))
		if code == http.StatusOK {
			images[path[strings.LastIndex(path, "/")+1:]] = data
		}
		return code == http.StatusOK
	}
	require.Eventually(t, func() bool { return get("api/cameras/" + camera + "/image.jpg") }, programtest.Patience, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		_, text := programtest.Get(t, visitor, page+"api/events?camera="+camera)
		var answer struct {
			Events []struct{ ID, Frame, Crop string }
		}
		require.NoError(t, json.Unmarshal(text, &answer))
		for _, e := range answer.Events {
			if e.Frame != "" && e.Crop != "" {
				return get(e.Frame) && get(e.Crop) && get("api/events/"+e.ID+"/snapshot.jpg") && get("api/events/"+e.ID+"/thumbnail.jpg")
			}
		}
		return false
	}, programtest.Patience, 100*time.Millisecond)
	require.Len(t, images, 5)
	return images
}

// hasVideo reports whether the page gives the camera's own video away.
func hasVideo(t *testing.T, page, camera string) bool {
	conn, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(page, "http")+"api/video?camera="+camera, nil)
	require.NoError(t, err)
	defer response.Body.Close()
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(programtest.Patience)))
	var description struct{ Codec string }
	require.NoError(t, conn.ReadJSON(&description))
	return description.Codec != ""
}

// mqttImages returns a camera's scene and a crop as they are published.
func mqttImages(t *testing.T, port int, camera string) map[string][]byte {
	base := "edge-infer/site/" + camera
	images := map[string][]byte{}
	for _, topic := range []string{base + "/image", base + "/snapshot/+"} {
		out, err := exec.Command(testtool.Program(t, "mosquitto_sub"), "-p", fmt.Sprint(port), "-t", topic, "-C", "1", "-W", "120", "-F",
			"%x").Output()
		require.NoError(t, err, topic)
		image, err := hex.DecodeString(string(bytes.TrimSpace(out)))
		require.NoError(t, err)
		images[topic] = image
	}
	return images
}

// clipImage returns an image of a camera's clip.
func clipImage(t *testing.T, page, camera string) []byte {
	var clip []string
	require.Eventually(t, func() bool {
		clip = storedEvents(t, page, camera)
		return len(clip) > 0
	}, programtest.Patience, 100*time.Millisecond)
	path := filepath.Join(t.TempDir(), "clip.mp4")
	require.Eventually(t, func() bool {
		code, data := programtest.Get(t, programtest.Visitor(t), page+strings.TrimPrefix(clip[len(clip)-1], "/"))
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return code == http.StatusOK && bytes.Count(data, []byte("moof")) > 0
	}, programtest.Patience, 100*time.Millisecond)
	codec, err := exec.Command(testtool.Program(t, "ffprobe"), "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0",
		path).Output()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"open": "h264", "private": "mjpeg"}[camera], string(bytes.TrimSpace(codec)))
	image, err := exec.Command(testtool.Program(t, "ffmpeg"), "-v", "error", "-i", path, "-frames:v", "1", "-c:v", "mjpeg", "-q:v", "2",
		"-f", "image2", "-").Output()
	require.NoError(t, err)
	return image
}
