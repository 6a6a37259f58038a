package fleet

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// newCamera opens a camera, taking over the capture of an earlier one if that is not nil. A file or directory yields every frame and waits
// for the network, unless it loops: then it acts as a live camera.
func (f *Fleet) newCamera(c site.Camera, running *capture.Camera) (*camera.Camera, error) {
	uri, err := capture.ParseURI(c.URI)
	if err != nil {
		return nil, err
	}
	captured, at := running, f.devices.At(running)
	if captured == nil {
		at = f.devices.Choose(&c.Network)
		captured = &capture.Camera{
			Name: c.Name, URI: c.URI, Open: source.Open, Alloc: at.Memory.Alloc, StallTimeout: c.Stall, Notify: at.Notify.Signal, Logger: f.Logger,
			KeepUnits: keepUnits(&c), Record: c.Record, OpenRecord: source.OpenUndecoded,
			Lossless: readOnce(uri, f.Loop), Once: f.finite(), MaxPixels: c.MaxPixels, GPU: at.GPU(),
			OnChange: f.cameraChanged, Child: process.CameraChild(), Gate: new(motion.Gate), SetupThread: f.Process.Capture.SetupCaptureThread,
		}
		if f.Loop {
			captured.AtEnd = capture.Loop
		}
		warnUnverified(f.Logger, c.Name, c.URI, c.Record)
		if uri.Kind == capture.File {
			media.WarnUnread(f.Logger.With("camera", c.Name), false, uri.Address)
		}
		f.devices.Put(captured, at)
	}
	tracker, err := f.newTracker(c, uri, at)
	if err != nil {
		return nil, err
	}
	captured.Gate.(*motion.Gate).Set(gate(&c.Motion))
	inLoop := pipeline.Camera{
		Name: c.Name, Source: captured, Lossless: captured.Lossless, Tracker: tracker, Settings: f.settings(&c),
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
	inLoop.Privacy, err = privacy(&c, &f.devices, at)
	if err != nil {
		return nil, err
	}
	if c.Motion.Enabled {
		inLoop.MinRate = c.Motion.MinRate
	}
	if c.ROI != nil {
		inLoop.Region = pipeline.Region(*c.ROI)
	}
	return &camera.Camera{Site: c, Capture: captured, Loop: inLoop}, nil
}

// warnUnverified logs that a camera has an address whose certificate is not verified. The addresses were checked with the configuration.
func warnUnverified(logger *slog.Logger, name string, addresses ...string) {
	unverified := func(address string) bool {
		u, _ := capture.ParseURI(address)
		return u.Certificate == "insecure"
	}
	if slices.ContainsFunc(addresses, unverified) {
		logger.Warn("the certificate of the camera is not verified: whoever answers in its place gets its password", "camera", name)
	}
}

// settings returns the settings of a camera for the frame loop. Remotely set classes that its model lacks are ignored; if none is left, the
// camera reports nothing, which is logged.
func (f *Fleet) settings(c *site.Camera) *pipeline.Settings {
	s := pipelineSettings(c)
	if s.Classes == nil {
		return s
	}
	model := f.devices.ModelOf(&c.Network)
	if model == nil {
		if f.devices.Configured(&c.Network) { // it is opened later, and its classes are not known before
			s.Classes = nil
		}
		return s
	}
	s.Classes = slices.DeleteFunc(slices.Clone(s.Classes), func(class string) bool {
		return !slices.Contains(model.Metadata.Labels, class)
	})
	if len(s.Classes) == 0 {
		f.Logger.Warn(noClasses(c), "camera", c.Name, "hint", "publish an empty message to the camera's labels/set topic to withdraw them")
	}
	return s
}

// privacy returns the hidden parts of a camera's images, nil for none.
func privacy(c *site.Camera, devices *device.Set, at *device.Device) (*pipeline.Privacy, error) {
	if !c.Privacy.Enabled() {
		return nil, nil
	}
	p := &pipeline.Privacy{Regions: c.Privacy.Regions, Labels: c.Privacy.Labels, Score: float32(c.Configured.Confidence) / 2}
	switch model := at.Running().Model(); {
	case len(p.Labels) == 0:
	case devices.ModelOf(&c.Network) == nil && devices.Configured(&c.Network): // it is opened later; until then there are no images
		p.Labels = nil
	case !model.Recognised.Task.FindsObjects():
		return nil, errors.New("privacy.labels needs a model that finds objects; privacy.regions works with every model")
	}
	return p, nil
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
		s.X, s.Y = m.ROI.X, m.ROI.Y
		s.Width, s.Height = m.ROI.Width, m.ROI.Height
	}
	return s
}

// cameraChanged passes on a camera's new state. The objects of a camera end when its images stop.
func (f *Fleet) cameraChanged(now capture.Stats) {
	if now.State != capture.Running {
		f.devices.EndObjects(now.Name)
	}
	f.OnChange(now)
}

// readOnce reports whether a camera is a video or a directory that is read once; loop is that of the run.
func readOnce(uri capture.URI, loop bool) bool {
	return uri.Kind == capture.File && !loop && !uri.Loop
}

// finite reports whether all cameras are files. Then an unreadable one is an error; next to a live camera it may still appear.
func (f *Fleet) finite() bool {
	for _, c := range f.site.Load().Cameras() {
		if uri, err := capture.ParseURI(c.URI); err != nil || !readOnce(uri, f.Loop) {
			return false
		}
	}
	return true
}

// demoLine counts the parts on the demo belt, which runs to the right.
func demoLine() zone.Line {
	return zone.Line{Name: "belt", From: zone.Point{X: 0.5, Y: 1}, To: zone.Point{X: 0.5, Y: 0}}
}

// logDemoModel explains, once, why the embedded demo model finds so little on a real camera.
func (f *Fleet) logDemoModel(model string, uri capture.URI) {
	if model == predict.Demo && uri.Kind != capture.Demo && !f.demoWarning.Swap(true) {
		f.Logger.Warn("the demo model knows nothing but the drawn parts of --camera demo",
			"hint", "edge-infer model pull yolox-s, then --model yolox-s, finds people, vehicles, animals and 70 things more")
	}
}

// newTracker returns what tracks the camera's objects, nil if objects are not tracked.
func (f *Fleet) newTracker(c site.Camera, uri capture.URI, at *device.Device) (*pipeline.Tracker, error) {
	model := at.Running().Model()
	f.logDemoModel(model.Path, uri)
	if !f.site.Load().Track || !model.Recognised.Task.FindsObjects() {
		return nil, nil
	}
	tracker := &pipeline.Tracker{
		Config: c.Analytics, Labels: model.Metadata.Labels, Keypoints: model.Recognised.KeypointNames(),
		Confidence: float32(c.Configured.Confidence), Profile: c.Profile,
	}
	if f.cascade != nil {
		if embedding := f.cascade.Embedder(); embedding != nil {
			tracker.MaxLostAge = embedding.MaxLostAge
			tracker.AppearanceThreshold = embedding.Confidence
		}
	}
	if uri.Kind == capture.Demo && len(c.Analytics.Lines) == 0 && c.Analytics.Width == 0 {
		tracker.Config.Lines = []zone.Line{demoLine()}
	}
	return tracker, tracker.Open()
}
