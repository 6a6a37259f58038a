package daemon

import (
	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// newCamera makes the camera that c describes, around a capture side that runs already where there is one. A file or directory gives every
// frame and waits for the network, unless it is to loop: then it stands for a live camera.
func (r *run) newCamera(c config.Camera, running *capture.Camera) (*camera.Camera, error) {
	uri, err := capture.ParseURI(c.URI)
	if err != nil {
		return nil, err
	}
	r.process.Capture.SetCameraCount(len(r.config.Cameras))
	captured, at := running, r.devices.At(running)
	if captured == nil {
		at = r.devices.Choose(network.ViewOf(r.config, &c))
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
	follower, err := r.newFollower(c, uri, at)
	if err != nil {
		return nil, err
	}
	moving := r.config.MotionOf(&c)
	captured.Gate.(*motion.Gate).Set(gate(&moving))
	place := pipeline.Camera{
		Name: c.Name, Source: captured, Interval: c.Interval, Lossless: captured.Lossless, Tracker: follower,
		Confidence: float32(network.Confidence(r.config, &c)),
		Scheduling: pipeline.Scheduling{Rate: c.Rate, Priority: c.Priority, Deadline: c.Deadline},
	}
	if model := at.Running().Model(); model.Recognised.Task.Maps() {
		if err := c.Analytics.Validate(zone.Names{Labels: model.Metadata.Labels}); err != nil {
			return nil, err
		}
		place.MapStats = &zone.MapStats{Config: c.Analytics, Depth: model.Recognised.Task == engine.Depth}
		if !place.MapStats.Depth {
			place.MapStats.Labels = model.Metadata.Labels
		}
	}
	if moving.Enabled {
		place.MinRate = moving.MinRate
	}
	if c.ROI != nil {
		place.Region = pipeline.Region(*c.ROI)
	}
	return &camera.Camera{Config: c, Capture: captured, Place: place}, nil
}

// gate is what a camera's gate is told.
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
		r.devices.Left(now.Name)
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

// newFollower makes what tracks the camera's objects; nil where nothing is tracked.
func (r *run) newFollower(c config.Camera, uri capture.URI, at *device.Device) (*pipeline.Tracker, error) {
	model := at.Running().Model()
	r.tellDemo(model.Path, uri)
	if !r.config.Detect.Track || !model.Recognised.Task.FindsObjects() {
		return nil, nil
	}
	follower := &pipeline.Tracker{
		Config: c.Analytics, Labels: model.Metadata.Labels, Keypoints: model.Recognised.KeypointNames(),
		Confidence: float32(network.Confidence(r.config, &c)),
		Profile:    track.Profile(network.Profile(r.config, &c)),
	}
	if r.cascade != nil {
		if looks := r.cascade.Embedder(); looks != nil {
			follower.MaxLostAge, follower.AppearanceThreshold = looks.MaxLostAge, looks.Confidence
		}
	}
	if uri.Kind == capture.Demo && len(c.Analytics.Lines) == 0 && c.Analytics.Width == 0 {
		follower.Config.Lines = []zone.Line{demoLine()}
	}
	return follower, follower.Open()
}
