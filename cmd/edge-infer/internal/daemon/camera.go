package daemon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// newCamera opens a camera, with the capture side of an earlier one if that is not nil. A file or directory gives every frame and waits for
// the network, unless it loops: then it stands for a live camera.
func (r *run) newCamera(c site.Camera, running *capture.Camera) (*camera.Camera, error) {
	uri, err := capture.ParseURI(c.URI)
	if err != nil {
		return nil, err
	}
	captured, at := running, r.devices.At(running)
	if captured == nil {
		at = r.devices.Choose(&c.Network)
		captured = &capture.Camera{
			Name: c.Name, URI: c.URI, Open: source.Open, Alloc: at.Memory.Alloc, StallTimeout: c.Stall, Notify: at.Notify.Signal, Logger: r.logger,
			Lossless: r.readOnce(uri), Once: r.finite(), MaxPixels: c.MaxPixels, OnChange: r.cameraChanged,
			Gate: new(motion.Gate), SetupThread: r.process.Capture.SetupCaptureThread,
		}
		if r.Loop {
			captured.AtEnd = capture.Loop
		}
		r.devices.Put(captured, at)
	}
	tracker, err := r.newTracker(c, uri, at)
	if err != nil {
		return nil, err
	}
	captured.Gate.(*motion.Gate).Set(gate(&c.Motion))
	inLoop := pipeline.Camera{
		Name: c.Name, Source: captured, Lossless: captured.Lossless, Tracker: tracker, Settings: r.settings(&c),
		Scheduling: pipeline.Scheduling{Rate: c.Rate, Priority: c.Priority, Deadline: c.Deadline},
	}
	if model := at.Running().Model(); model.Recognised.Task.Maps() {
		if err := c.Analytics.Validate(zone.Names{Labels: model.Metadata.Labels}); err != nil {
			return nil, err
		}
		inLoop.MapStats = &zone.MapStats{Config: c.Analytics, Depth: model.Recognised.Task == engine.Depth}
		if !inLoop.MapStats.Depth {
			inLoop.MapStats.Labels = model.Metadata.Labels
		}
	}
	if c.Motion.Enabled {
		inLoop.MinRate = c.Motion.MinRate
	}
	if c.ROI != nil {
		inLoop.Region = pipeline.Region(*c.ROI)
	}
	return &camera.Camera{Site: c, Capture: captured, Loop: inLoop}, nil
}

// settings returns the settings of a camera for the frame loop. Remotely set classes that its model lacks are ignored; if none is left, the
// camera reports nothing, which is logged.
func (r *run) settings(c *site.Camera) *pipeline.Settings {
	s := pipelineSettings(c)
	model := r.devices.ModelOf(&c.Network)
	if s.Classes == nil || model == nil {
		return s
	}
	s.Classes = slices.DeleteFunc(slices.Clone(s.Classes), func(class string) bool {
		return !slices.Contains(model.Metadata.Labels, class)
	})
	if len(s.Classes) == 0 {
		r.logger.Warn(noClasses(c), "camera", c.Name, "hint", "publish an empty message to the camera's labels/set topic to withdraw them")
	}
	return s
}

func pipelineSettings(c *site.Camera) *pipeline.Settings {
	return &pipeline.Settings{
		Detect: c.Settings.Detect, Confidence: float32(c.Settings.Confidence), Interval: c.Settings.Interval, Classes: c.Settings.Classes,
	}
}

// noClasses is the reason why a camera reports nothing.
func noClasses(c *site.Camera) string {
	return fmt.Sprintf("no detections are reported: the model has no class named %s", strings.Join(c.Settings.Classes, ", "))
}

// gate returns the settings of a camera's motion gate.
func gate(m *config.CameraMotion) motion.Settings {
	s := motion.Settings{Enabled: m.Enabled, Sensitivity: m.Sensitivity}
	if m.ROI != nil {
		s.X, s.Y, s.Width, s.Height = m.ROI.X, m.ROI.Y, m.ROI.Width, m.ROI.Height
	}
	return s
}

// cameraChanged has everybody know of a camera's new state. What a camera showed is over when its images stop.
func (r *run) cameraChanged(now capture.Stats) {
	running := now.State == capture.Running
	if !running {
		r.devices.EndObjects(now.Name)
	}
	if r.outputs.client != nil {
		r.outputs.client.Available(now.Name, running)
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// readOnce reports whether a camera is a video or a directory that is read once.
func (r *run) readOnce(uri capture.URI) bool {
	return uri.Kind == capture.File && !r.Loop && !uri.Loop
}

// finite reports whether all cameras are: then what cannot be read is a mistake. Beside a live camera it may still come.
func (r *run) finite() bool {
	for i := range r.config.Cameras {
		if uri, err := capture.ParseURI(r.config.Cameras[i].URI); err != nil || !r.readOnce(uri) {
			return false
		}
	}
	return true
}

// demoLine counts the parts on the demo belt, which runs to the right.
func demoLine() zone.Line {
	return zone.Line{Name: "belt", From: zone.Point{X: 0.5, Y: 1}, To: zone.Point{X: 0.5, Y: 0}}
}

// tellDemo says, once, why a camera that shows the world is seen so little on by the embedded model.
func (r *run) tellDemo(model string, uri capture.URI) {
	if model == predict.Demo && uri.Kind != capture.Demo && !r.toldDemo.Swap(true) {
		r.logger.Warn("the demo model knows nothing but the drawn parts of --camera demo",
			"hint", "edge-infer model pull yolox-s, then --model yolox-s, finds people, vehicles, animals and 70 things more")
	}
}

// newTracker returns what tracks the camera's objects, nil if objects are not tracked.
func (r *run) newTracker(c site.Camera, uri capture.URI, at *device.Device) (*pipeline.Tracker, error) {
	model := at.Running().Model()
	r.tellDemo(model.Path, uri)
	if !r.site.Track || !model.Recognised.Task.FindsObjects() {
		return nil, nil
	}
	tracker := &pipeline.Tracker{
		Config: c.Analytics, Labels: model.Metadata.Labels, Keypoints: model.Recognised.KeypointNames(),
		Confidence: float32(c.Configured.Confidence), Profile: c.Profile,
	}
	if r.cascade != nil {
		if embedding := r.cascade.Embedder(); embedding != nil {
			tracker.MaxLostAge = embedding.MaxLostAge
			tracker.AppearanceThreshold = embedding.Confidence
		}
	}
	if uri.Kind == capture.Demo && len(c.Analytics.Lines) == 0 && c.Analytics.Width == 0 {
		tracker.Config.Lines = []zone.Line{demoLine()}
	}
	return tracker, tracker.Open()
}
