package infer

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	captured "github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// tracks follows the objects of videos, one after the other, as the daemon does. Images have no tracks.
type tracks struct {
	config *config.Config
	model  predict.Model
	logger *slog.Logger

	path   string            // video of tracker
	camera *pipeline.Tracker // nil before the first video
	result pipeline.Result
}

// newTracks returns nil if the settings or the model leave nothing to track in the files.
func newTracks(c *config.Config, model predict.Model, files []string, logger *slog.Logger) *tracks {
	if !tracked(c, files) || !model.Recognised.Task.FindsObjects() {
		return nil
	}
	return &tracks{config: c, model: model, logger: logger}
}

// tracked reports whether objects of the files are to be tracked: only videos have frames that follow each other.
func tracked(c *config.Config, files []string) bool {
	return c.Detect.Track && slices.ContainsFunc(files, func(path string) bool { return !captured.IsImage(path) })
}

// tracking holds the tracks of a frame's detections; the zero value is for images without a tracker.
type tracking struct {
	ids     []uint64          // by detection, 0 for none
	tracker *pipeline.Tracker // with zones, lines and counts
}

// id returns the track ID of a detection, 0 for none.
func (t *tracking) id(detection int) uint64 {
	if detection < len(t.ids) {
		return t.ids[detection]
	}
	return 0
}

// add tracks the detections of a frame, which shrink to the reported ones.
func (t *tracks) add(path string, number int, frame *capture.Frame, seen *predict.Result) (tracking, error) {
	confidence := float32(t.config.Detect.Confidence)
	if captured.IsImage(path) {
		seen.Detections = slices.DeleteFunc(seen.Detections, func(d postprocess.Detection) bool { return d.Score < confidence })
		return tracking{}, nil
	}
	if path != t.path {
		if err := t.begin(path, confidence); err != nil {
			return tracking{}, err
		}
	}
	position := frame.Position
	if position == 0 {
		position = time.Duration(float64(number) / cmp.Or(frame.FPS, annotate.UnknownRate) * float64(time.Second))
	}
	t.result.Camera, t.result.Seq, t.result.Time = path, uint64(number), time.Unix(0, 0).UTC().Add(position)
	t.result.Width, t.result.Height, t.result.Detections = frame.Width, frame.Height, seen.Detections
	img := frame.Image()
	if err := t.camera.Track(&t.result, &img); err != nil {
		return tracking{}, err
	}
	seen.Detections = t.result.Detections
	return tracking{t.result.IDs, t.camera}, nil
}

// begin opens a tracker for a video, with the zones and lines of its camera.
func (t *tracks) begin(path string, confidence float32) error {
	t.end()
	camera := cameraOf(t.config.Cameras, path)
	t.path, t.camera = path, &pipeline.Tracker{
		Config: camera.Analytics, Labels: t.model.Metadata.Labels, Keypoints: t.model.Recognised.KeypointNames(), Confidence: confidence,
		Profile: track.Profile(cmp.Or(camera.Profile, t.config.Detect.Profile)),
	}
	if err := t.camera.Open(); err != nil {
		return fmt.Errorf("track %s: %w", path, err)
	}
	return nil
}

// end logs the counts of the zones and lines in the current video.
func (t *tracks) end() {
	if t.camera == nil {
		return
	}
	for i := range t.camera.Config.Zones {
		t.logger.Info("zone", "file", t.path, "name", t.camera.Config.Zones[i].Name, "entered", sum(t.camera.ZoneCount(i).Entered))
	}
	for i := range t.camera.Config.Lines {
		count := t.camera.LineCount(i)
		t.logger.Info("line", "file", t.path, "name", t.camera.Config.Lines[i].Name, "in", sum(count.In), "out", sum(count.Out))
	}
}

// cameraOf returns the camera of the configuration that plays the file, or else its only camera: that is the one that recorded it.
func cameraOf(cameras []config.Camera, path string) config.Camera {
	for i := range cameras {
		if same(cameras[i].URI, path) {
			return cameras[i]
		}
	}
	if len(cameras) == 1 {
		return cameras[0]
	}
	return config.Camera{Analytics: zone.Config{}}
}

func sum(counts []int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}
