package main

import (
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/mqtt"
)

// errRestart ends a run that shall begin again as a new process.
var errRestart = errors.New("restart asked for")

// controller carries out the remote commands that arrive over MQTT.
type controller struct{ daemon *daemon }

var _ mqtt.Controller = controller{}

func (c controller) SetDetect(camera string, on bool) error {
	return c.daemon.pipeline.Change(camera, func(s *pipeline.Settings) { s.Detect = on })
}

func (c controller) SetThreshold(camera string, threshold float64) error {
	return c.daemon.pipeline.Change(camera, func(s *pipeline.Settings) { s.Threshold = float32(threshold) })
}

func (c controller) SetInterval(camera string, frames int) error {
	return c.daemon.pipeline.Change(camera, func(s *pipeline.Settings) { s.Interval = frames })
}

func (c controller) SetLabels(camera string, labels []string) error {
	return c.daemon.pipeline.Change(camera, func(s *pipeline.Settings) { s.Labels = labels })
}

func (c controller) Snapshot(camera string) error { return c.daemon.snapshots.Request(camera) }

func (c controller) Reload() error {
	c.daemon.askReload()
	return nil
}

func (c controller) Restart() error {
	c.daemon.cancel(errRestart)
	return nil
}

// announce tells brokers and Home Assistant what there is, and clears what this process has published of cameras, zones and lines that are gone.
// Their last words must have been said.
func (d *daemon) announce() error {
	labels := d.engine.Model().Metadata.Labels
	announcement := &mqtt.Announcement{Version: release}
	found := sensorsOf(d.monitor.Latest())
	announcement.Temperatures, announcement.Power, announcement.Loads, announcement.PowerMode = found.temperatures, found.power, found.loads, found.mode
	for _, camera := range d.fleet.Places() {
		settings, _ := d.pipeline.Settings(camera.Name)
		if d.client.Controller != nil {
			d.client.Settings(camera.Name, mqtt.Settings{
				Detect: settings.Detect, Threshold: float64(settings.Threshold), Interval: settings.Interval, Labels: settings.Labels,
			})
		}
		announced := mqtt.AnnouncedCamera{Name: camera.Name}
		if camera.Follower != nil {
			announced.Labels = labels
			for _, z := range camera.Follower.Config.Zones {
				announced.Zones = append(announced.Zones, z.Name)
			}
			for _, l := range camera.Follower.Config.Lines {
				announced.Lines = append(announced.Lines, l.Name)
			}
		}
		announcement.Cameras = append(announcement.Cameras, announced)
	}
	return d.client.Announce(announcement)
}
