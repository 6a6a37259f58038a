package daemon

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/mqtt"
)

// controller carries out the remote commands that arrive over MQTT.
type controller struct{ run *run }

var _ mqtt.Controller = controller{}

func (c controller) SetDetect(camera string, on bool) error {
	err := c.run.devices.Change(camera, func(s *pipeline.Settings) { s.Detect = on })
	if err == nil && !on {
		c.run.devices.Left(camera) // nobody looks any more at what it shows
	}
	return err
}

func (c controller) SetThreshold(camera string, threshold float64) error {
	return c.run.devices.Change(camera, func(s *pipeline.Settings) { s.Confidence = float32(threshold) })
}

func (c controller) SetInterval(camera string, frames int) error {
	return c.run.devices.Change(camera, func(s *pipeline.Settings) { s.Interval = frames })
}

func (c controller) SetLabels(camera string, labels []string) error {
	return c.run.devices.Change(camera, func(s *pipeline.Settings) { s.Classes = labels })
}

func (c controller) Snapshot(camera string) error { return c.run.outputs.snapshots.Request(camera) }

func (c controller) Reload() error {
	c.run.askReload()
	return nil
}

func (c controller) Restart() error { return c.run.restart(c.run.ending) }

// applyRemote puts what remote commands have set in earlier runs in the place of what is configured: a camera that was switched off stays
// off.
func (r *run) applyRemote(cameras []pipeline.Camera) {
	client := r.outputs.client
	if client == nil {
		return
	}
	for _, camera := range cameras {
		remote := client.Remote(camera.Name)
		err := r.devices.Change(camera.Name, func(s *pipeline.Settings) {
			settings := mqtt.Settings{Detect: s.Detect, Threshold: float64(s.Confidence), Interval: s.Interval, Labels: s.Classes}
			settings.Apply(remote)
			s.Detect, s.Confidence, s.Interval, s.Classes = settings.Detect, float32(settings.Threshold), settings.Interval, settings.Labels
		})
		if err != nil { // of another model, perhaps
			r.logger.Warn("remote settings do not fit any more, those of the configuration are in force", "camera", camera.Name, "error", err)
			client.ForgetRemote(camera.Name)
		}
	}
}

// forgetRemote takes back what remote commands have set of cameras whose configuration says something else about it than before.
func (r *run) forgetRemote(was *config.Config) {
	client := r.outputs.client
	if client == nil {
		return
	}
	for i := range r.config.Cameras {
		now := &r.config.Cameras[i]
		before := slices.IndexFunc(was.Cameras, func(c config.Camera) bool { return c.Name == now.Name })
		if before < 0 {
			continue
		}
		if was.Cameras[before].Interval != now.Interval {
			client.ForgetRemote(now.Name, "interval")
		}
		if was.Detect.Confidence != r.config.Detect.Confidence {
			client.ForgetRemote(now.Name, "threshold")
		}
	}
}
