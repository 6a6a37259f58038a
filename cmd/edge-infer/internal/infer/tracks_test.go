package infer

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/draw"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

const beltWidth, beltHeight, beltFrames = 320, 240, 60

// beltVideo writes a video of the demo scene, in which parts pass from left to right.
func beltVideo(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "belt.avi")
	belt := &scene.Scene{Width: beltWidth, Height: beltHeight, Seed: 1}
	require.NoError(t, belt.Open())
	writer, err := gocv.VideoWriterFileWithAPI(path, gocv.VideoCaptureOpencvMjpeg, "MJPG", 15, beltWidth, beltHeight, true)
	require.NoError(t, err)
	pixels := make([]byte, 3*beltWidth*beltHeight)
	for n := range beltFrames {
		_, err := belt.Draw(2*n, pixels, 3*beltWidth, nil)
		require.NoError(t, err)
		img, err := gocv.NewMatFromBytes(beltHeight, beltWidth, gocv.MatTypeCV8UC3, pixels)
		require.NoError(t, err)
		require.NoError(t, writer.Write(img))
		require.NoError(t, img.Close())
	}
	require.NoError(t, writer.Close())
	return path
}

// readVideo returns the pixels of every frame.
func readVideo(t *testing.T, path string) (frames [][]byte) {
	video, err := gocv.OpenVideoCapture(path)
	require.NoError(t, err)
	defer video.Close()
	img := gocv.NewMat()
	defer img.Close()
	for video.Read(&img) {
		require.Equal(t, []int{beltWidth, beltHeight}, []int{img.Cols(), img.Rows()})
		frames = append(frames, img.ToBytes())
	}
	return frames
}

// distance returns the mean difference of the values of two images.
func distance(a, b []byte) float64 {
	sum := 0
	for i := range a {
		sum += max(int(a[i])-int(b[i]), int(b[i])-int(a[i]))
	}
	return float64(sum) / float64(len(a))
}

// TestASavedVideoShowsTracksZonesAndCounts paints what the results say onto the source, and compares that with the saved video.
func TestASavedVideoShowsTracksZonesAndCounts(t *testing.T) {
	source, dir := beltVideo(t), t.TempDir()
	gate := zone.Line{Name: "gate", From: zone.Point{X: 0.5}, To: zone.Point{X: 0.5, Y: 1}}
	dock := zone.Zone{Name: "dock", Points: []zone.Point{{X: 0.6, Y: 0.1}, {X: 0.9, Y: 0.1}, {X: 0.9, Y: 0.9}, {X: 0.6, Y: 0.9}}}
	c := config.Default()
	c.Model.Path, c.Engine.Backend, c.Engine.Threads = "demo", "onnxruntime=cpu", 1
	c.Cameras = []config.Camera{{Name: "belt", URI: "rtsp://belt", Analytics: zone.Config{Zones: []zone.Zone{dock}, Lines: []zone.Line{gate}}}}
	var log bytes.Buffer
	p := &Images{Files: []string{source}, Save: dir, Video: annotate.AVI, Config: c, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	var results []Seen
	require.NoError(t, p.Run(t.Context(), func(seen *Seen) error {
		seen.detections = append([]postprocess.Detection{}, seen.detections...)
		results = append(results, *seen)
		return nil
	}))
	require.Len(t, results, beltFrames)
	saved, frames := readVideo(t, filepath.Join(dir, "belt.avi")), readVideo(t, source)
	require.Len(t, saved, beltFrames)

	seen, ids := &results[beltFrames-1], 0
	require.Equal(t, len(seen.detections), len(seen.Detections))
	painter := draw.Painter{Labels: scene.Labels()}
	img := draw.Image{Data: append([]byte{}, frames[beltFrames-1]...), Width: beltWidth, Height: beltHeight, Stride: 3 * beltWidth}
	var with, without []draw.Mark
	for i, d := range seen.detections {
		require.GreaterOrEqual(t, d.Score, float32(c.Detect.Confidence))
		with = append(with, draw.Mark{Detection: d, Track: seen.Detections[i].Track})
		without = append(without, draw.Mark{Detection: d})
		if with[i].Track > 0 {
			ids++
		}
	}
	require.Positive(t, ids)
	plain := draw.Image{Data: append([]byte{}, img.Data...), Width: beltWidth, Height: beltHeight, Stride: 3 * beltWidth}
	require.NoError(t, painter.Marks(plain, without))
	require.NoError(t, painter.Marks(img, with))
	assert.Less(t, distance(saved[beltFrames-1], img.Data), distance(saved[beltFrames-1], plain.Data), "the IDs are drawn")

	drawn := func(x, y int) float64 { // how far the first frame's pixel is from the source's
		at := 3 * (y*beltWidth + x)
		return distance(saved[0][at:at+3], frames[0][at:at+3])
	}
	assert.Greater(t, drawn(beltWidth/2, beltHeight*3/4), 30., "the line")
	counts := 0 // pixels in the colour of the line beside its upper end, wherever no object's label is
	for y := range beltHeight / 2 {
		for _, x := range [...]int{beltWidth/2 - 5, beltWidth/2 + 4} {
			at := 3 * (y*beltWidth + x)
			if distance(saved[0][at:at+3], []byte{64, 64, 255}) < 40 {
				counts++
			}
		}
	}
	assert.Greater(t, counts, 5, "its counts")
	assert.Greater(t, drawn(beltWidth*6/10, beltHeight/2), 30., "the zone")
	assert.Less(t, drawn(beltWidth*3/4, beltHeight*97/100), 20., "nothing")
	assert.Regexp(t, `msg=line file=\S+ name=gate in=\d+ out=\d+`, log.String())
	assert.NotContains(t, log.String(), "in=0 out=0")

	c.Detect.Track = false
	p.Save = ""
	number := 0
	require.NoError(t, p.Run(t.Context(), func(seen *Seen) error {
		assert.Len(t, seen.Detections, len(results[number].Detections), "tracking changes no detection")
		for _, d := range seen.Detections {
			assert.Zero(t, d.Track)
		}
		number++
		return nil
	}))
}

// TestZonesOfAVideo are those of the camera that plays it, or of the only one.
func TestZonesOfAVideo(t *testing.T) {
	video := beltVideo(t)
	gate, yard := config.Camera{Name: "gate", URI: video}, config.Camera{Name: "yard", URI: "rtsp://yard"}
	for _, test := range []struct {
		cameras []config.Camera
		want    string
	}{
		{nil, ""},
		{[]config.Camera{yard}, "yard"},
		{[]config.Camera{yard, gate}, "gate"},
		{[]config.Camera{yard, yard}, ""},
	} {
		camera := cameraOf(test.cameras, video)
		assert.Equal(t, test.want, camera.Name)
	}
}

func TestDetectionsOverTheLimitAreReported(t *testing.T) {
	c := config.Default()
	c.Model.Path, c.Engine.Backend, c.Engine.Threads, c.Detect.MaxDetections = "demo", "onnxruntime=cpu", 1, 1
	var log bytes.Buffer
	p := &Images{Files: []string{beltVideo(t)}, Config: c, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, p.Run(t.Context(), func(*Seen) error { return nil }))
	assert.Contains(t, log.String(), `msg="more detections than the limit, the weakest are left out" images=`)
	assert.Contains(t, log.String(), `limit=1 hint="raise --max-detections"`)
}

func TestTheLastLineSaysWhatWasWritten(t *testing.T) {
	c := config.Default()
	c.Model.Path, c.Engine.Backend, c.Engine.Threads = "demo", "onnxruntime=cpu", 1
	source, dir := beltVideo(t), t.TempDir()
	for _, test := range []struct {
		record Record
		save   string
		want   string
	}{
		{Record{Format: YOLO, Path: dir}, "", `msg="results written" files=60 directory=` + dir},
		{Record{Format: JSONLines, Path: dir + "/a.jsonl"}, "", `msg="results written" images=60 file=` + dir + "/a.jsonl"},
		{Record{}, dir, `msg="saved ` + dir + `/belt.avi, 60 frames"`},
	} {
		var log bytes.Buffer
		p := &Images{
			Files: []string{source}, Record: test.record, Save: test.save, Video: annotate.AVI, Config: c,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		require.NoError(t, p.Run(t.Context(), func(*Seen) error { return nil }))
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		assert.Contains(t, lines[len(lines)-1], test.want)
	}
}
