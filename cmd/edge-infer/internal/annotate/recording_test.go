package annotate

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// result is a grey frame of a camera with a detection.
func result(width, height int, after time.Duration) *pipeline.Result {
	return &pipeline.Result{
		Camera: "gate", Captured: int64(time.Hour + after), Width: width, Height: height, Labels: []string{"person"},
		Frame: &capture.Frame{
			Data: bytes.Repeat([]byte{128}, 3*width*height), Width: width, Height: height, Stride: 3 * width, Format: engine.BGR,
		},
		Detections: []postprocess.Detection{{
			Box:   postprocess.Box{X1: float32(width) / 4, Y1: float32(height) / 4, X2: float32(width) * 3 / 4, Y2: float32(height) * 3 / 4},
			Score: .9,
		}},
	}
}

// frames decodes a video.
func frames(t *testing.T, path string) (rate float64, all []gocv.Mat) {
	t.Helper()
	video, err := gocv.VideoCaptureFileWithAPI(path, gocv.VideoCaptureOpencvMjpeg)
	require.NoError(t, err)
	defer video.Close()
	for {
		img := gocv.NewMat()
		t.Cleanup(func() { _ = img.Close() })
		if !video.Read(&img) {
			return video.Get(gocv.VideoCaptureFPS), all
		}
		all = append(all, img)
	}
}

// A recording lasts as long as the camera was watched, in its own time, whatever the camera's rate and size, and shows what was detected.
func TestRecording(t *testing.T) {
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "gate.avi")
	for _, want := range []string{"gate.avi", "gate-2.avi"} { // an earlier recording is kept
		r := &Recording{Path: path, Camera: "gate", Logger: slog.New(slog.NewTextHandler(&log, nil))}
		require.NoError(t, r.Open())
		for i := range 11 { // 10 frames per second for a second
			in := result(320, 240, time.Duration(i)*100*time.Millisecond)
			if i == 6 {
				in = result(640, 480, 600*time.Millisecond)
			}
			if i == 8 {
				in.Frame.Format, in.Frame.Data, in.Frame.Stride = engine.GRAY8, in.Frame.Data[:320*240], 320
			}
			in.Lossless = true // the test is faster than the encoder
			in.Hidden = &pipeline.Hidden{Regions: [][]zone.Point{{{X: 0, Y: .8}, {X: .1, Y: .8}, {X: .1, Y: 1}, {X: 0, Y: 1}}}}
			r.Frame(in)
			other := result(320, 240, 0)
			other.Camera = "yard"
			r.Frame(other)
		}
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		rate, all := frames(t, filepath.Join(filepath.Dir(path), want))
		assert.InDelta(t, liveRate, rate, 0.1)
		assert.InDelta(t, liveRate, len(all), 1, "a second")
		for i, img := range all {
			require.Equal(t, []int{240, 320}, img.Size(), i)
			onBox, beside := img.GetVecbAt(120, 80), img.GetVecbAt(120, 160)
			assert.InDelta(t, 128, float64(beside[0]), 20, i)
			assert.Greater(t, max(onBox[0], onBox[1], onBox[2])-min(onBox[0], onBox[1], onBox[2]), uint8(40), "the box of frame %d: %v", i, onBox)
		}
		assert.Contains(t, log.String(), "saved "+filepath.Join(filepath.Dir(path), want)+", 11 frames")
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 2, "no partial files")
}

// An encoder that does not keep up costs frames of the recording, which are counted, and never time of the frame loop.
func TestASlowEncoderCostsFrames(t *testing.T) {
	r := &Recording{Camera: "gate", free: make(chan *shot, queue), full: make(chan *shot, queue)} // nothing is encoded
	for range queue {
		r.free <- new(shot)
	}
	for i := range queue + 5 {
		r.Frame(result(64, 48, time.Duration(i)))
	}
	assert.EqualValues(t, 5, r.missed.Load())
	assert.Len(t, r.full, queue)
}

// A full disk is an error with the path at the end, and leaves nothing.
func TestARecordingOnAFullDisk(t *testing.T) {
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(directory, syscall.MNT_DETACH) })
	r := &Recording{Path: directory + "/gate.avi", Camera: "gate", Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, r.Open())
	for i := range 60 {
		in := result(640, 480, time.Duration(i)*40*time.Millisecond)
		in.Lossless = true
		for at := range in.Frame.Data {
			in.Frame.Data[at] = byte(at * at >> 3)
		}
		r.Frame(in)
	}
	require.ErrorContains(t, r.Close(), directory+"/gate.avi")
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestContainer(t *testing.T) {
	for path, want := range map[string]string{"a.MP4": MP4, "b.avi": AVI} {
		got, err := Container(path)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := Container("x.mkv")
	require.EqualError(t, err, "x.mkv: must end with .mp4 or .avi")
}
