package daemon

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

// announce publishes discovery to brokers and Home Assistant and clears what this process published for removed cameras, zones and lines.
// Their last messages must have been sent.
func (o *outputs) announce() error {
	client := o.client
	if client == nil {
		return nil
	}
	announcement := &homeassistant.Announcement{Version: o.version, Labels: o.config.MQTT.DiscoveryLabels}
	announcement.Manufacturer, announcement.Model = hardware(o.root)
	if o.web != nil {
		announcement.URL = reachable(o.web.URL())
	}
	found := sensorsOf(o.sensorReadings())
	announcement.Temperatures, announcement.Power = found.temperatures, found.power
	announcement.Loads, announcement.PowerMode = found.loads, found.mode
	now := o.site()
	for _, c := range o.cameras.All() {
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
			announced.Seen = o.seen.Of(camera.Name)
			if inForce.Configured.Classes != nil {
				announced.Labels = inForce.Configured.Classes
				announced.Seen = inForce.Configured.Classes
			}
			for _, z := range camera.Tracker.Config.Zones {
				announced.Zones = append(announced.Zones, z.Name)
			}
			for _, l := range camera.Tracker.Config.Lines {
				announced.Lines = append(announced.Lines, l.Name)
			}
		}
		if stats := camera.MapStats; stats != nil {
			for _, z := range stats.Config.Zones {
				announced.Zones = append(announced.Zones, z.Name)
			}
			if announced.Classes = stats.Labels; stats.Depth {
				announced.DepthUnit = o.config.Detect.DepthUnit
			}
		}
		if at := o.groups.Of(camera.Name); at != nil {
			if m := at.Running().Model(); m.Recognised.Task == engine.Classify {
				announced.Classifier, announced.Classes = true, m.Metadata.Labels
			}
		}
		announcement.Cameras = append(announcement.Cameras, announced)
	}
	return client.Announce(announcement)
}
