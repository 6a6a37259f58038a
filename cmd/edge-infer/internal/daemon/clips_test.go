package daemon

import (
	"bytes"
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

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// beltVideo writes a video of the demo scene, 320x240.
func beltVideo(t *testing.T) string { return beltVideoOf(t, 320, 240) }

// beltVideoOf writes a video of the demo scene with a size in pixels.
func beltVideoOf(t *testing.T, width, height int) string {
	const rate, seconds = 10, 12
	s := scene.Scene{Width: width, Height: height, Rate: rate, Seed: 5}
	require.NoError(t, s.Open())
	path := filepath.Join(t.TempDir(), "belt.ts")
	command := exec.Command(testtool.Program(t, "ffmpeg"), "-v", "error", "-f", "rawvideo", "-pix_fmt", "bgr24", "-s",
		fmt.Sprintf("%dx%d", width, height), "-r", fmt.Sprint(rate), "-i", "-", "-c:v", "libx264",
		"-pix_fmt", "yuv420p", "-g", fmt.Sprint(rate), "-bf", "2", path)
	input, err := command.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	pixels := make([]byte, 3*width*height)
	for frame := range rate * seconds {
		_, err := s.Draw(frame, pixels, 3*width, nil)
		require.NoError(t, err)
		_, err = input.Write(pixels)
		require.NoError(t, err)
	}
	require.NoError(t, input.Close())
	require.NoError(t, command.Wait())
	return path
}

// storedEvents returns the events of a camera that have a clip.
func storedEvents(t *testing.T, page, camera string) (clips []string) {
	code, text := programtest.Get(t, programtest.Visitor(t), page+"api/events?camera="+camera)
	require.Equal(t, http.StatusOK, code, "%s", text)
	var answer struct {
		Events []struct{ ID, Clip string }
	}
	require.NoError(t, json.Unmarshal(text, &answer))
	for _, e := range answer.Events {
		if e.Clip != "" {
			clips = append(clips, e.Clip)
		}
	}
	return clips
}

// TestClipsOfEvents: the packets of an RTSP camera that FFmpeg decodes, and the images of a camera without packets, are clips of the events
// that the page lists. They are there after a restart too.
func TestClipsOfEvents(t *testing.T) {
	t.Parallel()
	server := &rtsptest.Server{Files: []string{beltVideo(t)}, Parameters: rtsptest.ParametersInSDP}
	require.NoError(t, server.Start())
	defer server.Close()
	state := t.TempDir()
	start := func() (*programtest.Program, string) {
		p := programtest.StartWith(t, []string{"STATE_DIRECTORY=" + state, "EDGE_INFER_CLIPS_BEFORE=2s", "EDGE_INFER_CLIPS_AFTER=1s"},
			"--camera", "gate="+server.URL(0), "--camera", "belt=demo?width=320&height=240&fps=10", "--mqtt", "off", "--web", "127.0.0.1:0",
			"--model", "demo",
			"--clips")
		return p, p.PrintedAfter("web page at ")
	}
	p, page := start()
	clips := map[string]string{}
	for _, camera := range []string{"gate", "belt"} {
		require.Eventually(t, func() bool {
			all := storedEvents(t, page, camera)
			if len(all) == 0 {
				return false
			}
			clips[camera] = all[len(all)-1]
			return true
		}, programtest.Patience, 100*time.Millisecond, "no event of %s with a clip", camera)
	}
	for camera := range clips { // the oldest clip has a few seconds of video
		require.Eventually(t, func() bool {
			files, err := filepath.Glob(filepath.Join(state, "clips", camera, "*.mp4"))
			require.NoError(t, err)
			if len(files) == 0 { // an event names its clip before the file is there
				return false
			}
			data, err := os.ReadFile(files[0])
			return err == nil && bytes.Count(data, []byte("moof")) > 3
		}, programtest.Patience, 100*time.Millisecond)
	}
	require.NoError(t, p.Stop(syscall.SIGTERM))
	require.NotContains(t, p.Stderr.String(), "no clips are recorded")

	p, page = start()
	for camera, codec := range map[string]string{"gate": "h264", "belt": "mjpeg"} {
		code, data := programtest.Get(t, programtest.Visitor(t), page+strings.TrimPrefix(clips[camera], "/"))
		require.Equal(t, http.StatusOK, code, "%s", clips[camera])
		path := filepath.Join(t.TempDir(), camera+".mp4")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		out, err := exec.Command(testtool.Program(t, "ffprobe"), "-v", "warning", "-count_frames", "-show_entries",
			"stream=codec_name,width,nb_read_frames", "-of", "csv=p=0", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		var frames int
		_, err = fmt.Sscanf(string(out), codec+",320,%d", &frames)
		require.NoError(t, err, "%s", out)
		require.Greater(t, frames, 5)
	}
	require.NoError(t, p.Stop(syscall.SIGTERM), "%s", p.Stderr)
}

// TestContinuousRecording: a camera is recorded all the time although nothing happens, and what was written before a kill is listed and
// plays after the next start.
func TestContinuousRecording(t *testing.T) {
	t.Parallel()
	server := &rtsptest.Server{Files: []string{beltVideo(t)}}
	require.NoError(t, server.Start())
	defer server.Close()
	state := t.TempDir()
	file := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(file, []byte("model: {path: demo}\nmqtt: {url: 'off'}\nweb: {listen: '127.0.0.1:0'}\n"+
		"detect: {track: false}\ncameras:\n  - name: gate\n    uri: "+server.URL(0)+"\n    clips: {continuous: true}\n"), 0o600))
	start := func() (*programtest.Program, string) {
		p := programtest.StartWith(t, []string{"STATE_DIRECTORY=" + state}, "--config", file)
		return p, p.PrintedAfter("web page at ")
	}
	type recording struct {
		Camera, Video string
		End           time.Time
	}
	recordings := func(page string) []recording {
		code, text := programtest.Get(t, programtest.Visitor(t), page+"api/recordings")
		require.Equal(t, http.StatusOK, code, "%s", text)
		var answer struct{ Recordings []recording }
		require.NoError(t, json.Unmarshal(text, &answer))
		return answer.Recordings
	}
	p, page := start()
	require.Eventually(t, func() bool {
		all := recordings(page)
		if len(all) == 0 {
			return false
		}
		_, data := programtest.Get(t, programtest.Visitor(t), page+strings.TrimPrefix(all[0].Video, "/"))
		return bytes.Count(data, []byte("moof")) > 2
	}, programtest.Patience, 100*time.Millisecond)
	_ = p.Stop(syscall.SIGKILL)

	p, page = start()
	require.Eventually(t, func() bool {
		all := recordings(page)
		return len(all) > 1 && !all[len(all)-1].End.IsZero()
	}, programtest.Patience, 100*time.Millisecond)
	all := recordings(page)
	oldest := all[len(all)-1]
	require.Equal(t, "gate", oldest.Camera)
	_, data := programtest.Get(t, programtest.Visitor(t), page+strings.TrimPrefix(oldest.Video, "/"))
	path := filepath.Join(t.TempDir(), "recording.mp4")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	out, err := exec.Command(testtool.Program(t, "ffprobe"), "-v", "warning", "-count_frames", "-show_entries",
		"stream=codec_name,width,nb_read_frames", "-of", "csv=p=0", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var frames int
	_, err = fmt.Sscanf(string(out), "h264,320,%d", &frames)
	require.NoError(t, err, "%s", out)
	require.Greater(t, frames, 15)
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// clipWidth returns the width of the images of the camera gate's newest clip with video in pixels, 0 if there is none.
func clipWidth(t *testing.T, page string) (width int) {
	all := storedEvents(t, page, "gate")
	if len(all) == 0 {
		return 0
	}
	_, data := programtest.Get(t, programtest.Visitor(t), page+strings.TrimPrefix(all[0], "/"))
	path := filepath.Join(t.TempDir(), "clip.mp4")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	out, err := exec.Command(testtool.Program(t, "ffprobe"), "-v", "error", "-show_entries", "stream=width", "-of", "csv=p=0", path).Output()
	if err != nil {
		return 0 // the clip has only begun
	}
	_, err = fmt.Sscan(string(out), &width)
	require.NoError(t, err, "%s", out)
	return width
}

// TestClipsOfAnotherStream: clips are of the stream of record, also after it was gone; detection goes on meanwhile, on one connection. The
// password of the stream is in no output.
func TestClipsOfAnotherStream(t *testing.T) {
	t.Parallel()
	decoded := &rtsptest.Server{Files: []string{beltVideo(t)}}
	require.NoError(t, decoded.Start())
	defer decoded.Close()
	video := beltVideoOf(t, 640, 480)
	serve := func(address string) *rtsptest.Server {
		s := &rtsptest.Server{Files: []string{video}, Address: address, User: "viewer", Password: "p@ss/word"}
		require.NoError(t, s.Start())
		return s
	}
	recorded := serve("")
	defer func() { recorded.Close() }()
	file := filepath.Join(t.TempDir(), "edge-infer.yaml")
	configuration := "model: {path: demo}\nmqtt: {url: 'off'}\nweb: {listen: '127.0.0.1:0'}\n" +
		"clips: {enabled: true, before: 1s, after: 1s}\ncameras:\n  - name: gate\n    uri: " + decoded.URL(0) + "\n"
	entry := "    record: rtsp://viewer:${GATE_PASSWORD}@" + recorded.Listening() + "/0\n"
	require.NoError(t, os.WriteFile(file, []byte(configuration+entry), 0o600))
	p := programtest.StartWith(t, []string{"STATE_DIRECTORY=" + t.TempDir(), "GATE_PASSWORD=p@ss/word"}, "--config", file)
	page := p.PrintedAfter("web page at ")
	record := func() (state string, inferred float64) {
		code, text := programtest.Get(t, programtest.Visitor(t), page+"api/status")
		require.Equal(t, http.StatusOK, code)
		require.NotContains(t, string(text), "p@ss")
		require.NotContains(t, string(text), "p%40ss")
		var status struct {
			Cameras []struct {
				Capture  struct{ Record struct{ State string } }
				Pipeline struct{ Inferred float64 }
			}
		}
		require.NoError(t, json.Unmarshal(text, &status))
		require.Len(t, status.Cameras, 1)
		return status.Cameras[0].Capture.Record.State, status.Cameras[0].Pipeline.Inferred
	}
	eventually := func(condition func() bool, what string) {
		t.Helper()
		require.Eventually(t, condition, programtest.Patience, 100*time.Millisecond, what)
	}
	eventually(func() bool { return clipWidth(t, page) == 640 }, "a clip of the recorded stream")
	require.Equal(t, 1, decoded.Stats(0).Connections)
	require.Equal(t, 1, recorded.Stats(0).Connections)

	address := recorded.Listening()
	recorded.Close()
	eventually(func() bool {
		state, _ := record()
		return state == "waiting" || state == "lost"
	}, "the recorded stream is gone")
	_, before := record()
	eventually(func() bool {
		_, now := record()
		return now > before+20
	}, "detection goes on")
	eventually(func() bool { return clipWidth(t, page) == 320 }, "clips of the decoded stream")
	recorded = serve(address)
	eventually(func() bool { return clipWidth(t, page) == 640 }, "clips of the recorded stream again")
	require.NoError(t, os.WriteFile(file, []byte(configuration), 0o600))
	p.Logged(`msg="configuration changed" cameras=1 undisturbed=1`)
	eventually(func() bool { return clipWidth(t, page) == 320 }, "clips of the decoded stream after a reload")
	require.Zero(t, recorded.Stats(0).Playing)
	require.Equal(t, 1, decoded.Stats(0).Connections)
	require.NoError(t, p.Stop(syscall.SIGTERM))
	require.NotContains(t, p.Stderr.String(), "p@ss")
	require.NotContains(t, p.Stderr.String(), "p%40ss")
}
