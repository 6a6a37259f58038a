package daemon

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

// announce tells brokers and Home Assistant what there is, and clears what this process has published of cameras, zones and lines that are
// gone. Their last words must have been said.
func (r *run) announce() error {
	client := r.outputs.client
	if client == nil {
		return nil
	}
	announcement := &homeassistant.Announcement{Version: r.Version, Labels: r.config.MQTT.DiscoveryLabels}
	announcement.Manufacturer, announcement.Model = hardware(r.Root)
	if r.outputs.web != nil {
		announcement.URL = reachable(r.outputs.web.URL())
	}
	found := sensorsOf(r.monitor.Latest())
	announcement.Temperatures, announcement.Power = found.temperatures, found.power
	announcement.Loads, announcement.PowerMode = found.loads, found.mode
	now, _ := r.current()
	for _, c := range r.cameras.All() {
		camera, inForce := c.Loop, now.Camera(c.Site.Name)
		if inForce == nil {
			continue // it is being removed
		}
		if client.Controller != nil {
			client.Settings(camera.Name, remoteSettings(inForce.Settings))
		}
		announced := homeassistant.Camera{Name: camera.Name}
		if camera.Tracker != nil {
			announced.Labels = camera.Tracker.Labels
			if inForce.Configured.Classes != nil {
				announced.Labels = inForce.Configured.Classes
			}
			for _, z := range camera.Tracker.Config.Zones {
				announced.Zones = append(announced.Zones, z.Name)
			}
			for _, l := range camera.Tracker.Config.Lines {
				announced.Lines = append(announced.Lines, l.Name)
			}
		}
		if survey := camera.MapStats; survey != nil {
			for _, z := range survey.Config.Zones {
				announced.Zones = append(announced.Zones, z.Name)
			}
			if announced.Classes = survey.Labels; survey.Depth {
				announced.DepthUnit = r.config.Detect.DepthUnit
			}
		}
		if at := r.devices.Of(camera.Name); at != nil {
			if m := at.Running().Model(); m.Recognised.Task == engine.Classify {
				announced.Classifier, announced.Classes = true, m.Metadata.Labels
			}
		}
		announcement.Cameras = append(announcement.Cameras, announced)
	}
	return client.Announce(announcement)
}
