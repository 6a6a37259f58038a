package outputs

import (
	"reflect"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

// AnnounceChanges announces what a State announces if that differs from the last announcement.
func (o *Outputs) AnnounceChanges(s *state.State) error {
	if o.client == nil || reflect.DeepEqual(discovery(s, o.inForce()), o.announced) {
		return nil
	}
	return o.Announce(s)
}

// Announce publishes discovery to brokers and Home Assistant and clears what this process published for removed cameras, zones and lines.
// Their last messages must have been sent.
func (o *Outputs) Announce(s *state.State) error {
	if o.client == nil {
		return nil
	}
	for i := range s.Cameras {
		if c := &s.Cameras[i]; o.client.Controller != nil && !c.Leaving {
			o.client.Settings(c.Site.Name, state.RemoteSettings(c.Site.Settings))
		}
	}
	o.announced = discovery(s, o.inForce())
	announcement := discovery(s, o.inForce())
	announcement.Manufacturer, announcement.Model = hardware(o.Root)
	return o.client.Announce(announcement)
}

// discovery returns what a State announces, apart from the machine.
func discovery(s *state.State, o *site.Outputs) *homeassistant.Announcement {
	announcement := &homeassistant.Announcement{Version: s.Version, Labels: o.MQTT.DiscoveryLabels}
	if s.Outputs.Page != "" {
		announcement.URL = reachable(s.Outputs.Page)
	}
	if r := s.Sensors; r != nil {
		for _, t := range r.Temperatures {
			announcement.Temperatures = append(announcement.Temperatures, t.Name)
		}
		for _, rail := range r.Rails {
			announcement.Power = append(announcement.Power, rail.Name)
		}
		for _, load := range loads(r) {
			announcement.Loads = append(announcement.Loads, load.Name)
		}
		announcement.PowerMode = r.PowerMode != ""
	}
	for i := range s.Cameras {
		if camera := &s.Cameras[i]; !camera.Leaving {
			announcement.Cameras = append(announcement.Cameras, announced(camera, o.DepthUnit))
		}
	}
	return announcement
}

func announced(c *state.Camera, depthUnit string) homeassistant.Camera {
	camera := homeassistant.Camera{Name: c.Site.Name}
	for _, z := range c.Analytics.Zones {
		camera.Zones = append(camera.Zones, z.Name)
	}
	for _, l := range c.Analytics.Lines {
		camera.Lines = append(camera.Lines, l.Name)
	}
	if c.Model == nil {
		return camera
	}
	labels := c.Model.Metadata.Labels
	switch task := c.Model.Recognised.Task; {
	case c.Tracked && c.Site.Configured.Classes != nil:
		camera.Labels, camera.Seen = c.Site.Configured.Classes, c.Site.Configured.Classes
	case c.Tracked:
		camera.Labels, camera.Seen = labels, c.Seen
	case task == engine.Depth:
		camera.DepthUnit = depthUnit
	case task.Maps():
		camera.Classes = labels
	case task == engine.Classify:
		camera.Classifier, camera.Classes = true, labels
	}
	return camera
}
