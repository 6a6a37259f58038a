package mqtt

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Announcement is what Home Assistant is told of the device. Names may hold anything.
type Announcement struct {
	Manufacturer, Model, Serial string
	Version                     string // of edge-infer
	URL                         string // of the device's web page, empty when it has none
	Cameras                     []AnnouncedCamera
	Temperatures                []string // names of the readings in Stats
	Power                       []string
	Loads                       []string
	PowerMode                   bool // the device has power modes
}

// AnnouncedCamera is what one camera publishes.
type AnnouncedCamera struct {
	Name   string
	Labels []string // that are counted and have snapshots
	Zones  []string
	Lines  []string
}

const projectURL = "https://github.com/edge-infer/edge-infer"

// Announce says what the device has from now on. It publishes the device to Home Assistant as one discovery bundle, QoS 1 and retained, and
// again whenever Home Assistant comes up; with an empty DiscoveryPrefix it does not. Then it clears the retained topics of each camera, zone
// and line that has published before and is not in the announcement. Nothing of those may be published any more.
// Source: https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
func (c *Client) Announce(a *Announcement) error {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	if c.DiscoveryPrefix != "" {
		if err := c.discover(a); err != nil {
			return fmt.Errorf("announce device: %w", err)
		}
	}
	c.withdraw(a.Cameras)
	return nil
}

// discover publishes the discovery bundle.
func (c *Client) discover(a *Announcement) error {
	b := bundle{topics: c.topics, id: c.discoveryID(), components: map[string]component{}}
	b.device()
	for i := range a.Cameras {
		b.camera(&a.Cameras[i])
		if c.Controller != nil {
			b.controls(a.Cameras[i].Name)
		}
	}
	if c.Controller != nil {
		b.button("", controlReload, "Reload configuration", "")
		b.button("", controlRestart, "Restart", "restart")
	}
	for _, name := range a.Temperatures {
		b.add("temperature_"+name, "sensor", "Temperature "+name, component{
			"state_topic": c.topics.Stats(), "value_template": valueOf("temperature_c", name), "device_class": "temperature",
			"unit_of_measurement": "°C", "state_class": "measurement", "entity_category": "diagnostic",
		})
	}
	for _, name := range a.Power {
		b.add("power_"+name, "sensor", "Power "+name, component{
			"state_topic": c.topics.Stats(), "value_template": valueOf("power_w", name), "device_class": "power",
			"unit_of_measurement": "W", "state_class": "measurement", "entity_category": "diagnostic",
		})
	}
	for _, name := range a.Loads {
		b.add("load_"+name, "sensor", "Load "+name, component{
			"state_topic": c.topics.Stats(), "value_template": valueOf("load_pct", name), "unit_of_measurement": "%",
			"state_class": "measurement", "entity_category": "diagnostic",
		})
	}
	if a.PowerMode {
		b.add("power_mode", "sensor", "Power mode", component{
			"state_topic": c.topics.Stats(), "value_template": valueOf("power_mode"), "entity_category": "diagnostic",
		})
	}
	if len(a.Temperatures)+len(a.Loads) > 0 {
		b.add("throttled", "binary_sensor", "Slowed down", component{
			"state_topic": c.topics.Stats(), "value_template": "{{ 'ON' if value_json.throttled else 'OFF' }}", "device_class": "problem",
			"entity_category": "diagnostic",
		})
	}
	slot := c.slot(slotKey{kind: kindDiscovery})
	b.remove(c.components, slot.settled())
	device := map[string]any{"identifiers": []string{b.id}, "name": c.Device}
	for key, value := range map[string]string{
		"manufacturer": a.Manufacturer, "model": a.Model, "serial_number": a.Serial, "sw_version": a.Version, "configuration_url": a.URL,
	} {
		if value != "" {
			device[key] = value
		}
	}
	payload, err := json.Marshal(map[string]any{
		"device": device,
		"origin": map[string]any{"name": "edge-infer", "sw_version": a.Version, "support_url": projectURL},
		// Home Assistant knows two payloads; the template makes everything but online, also stopped, the other one.
		"availability": []any{map[string]any{
			"topic": c.topics.Available(), "value_template": "{{ 'online' if value == 'online' else 'offline' }}",
		}},
		"qos":        1,
		"components": b.components,
	})
	if err != nil {
		return err
	}
	c.components = b.components
	slot.put(func(buf []byte) []byte { return append(buf, payload...) })
	return nil
}

func (c *Client) birthTopic() string { return c.DiscoveryPrefix + "/status" }

func (c *Client) discoveryTopic() string {
	return c.DiscoveryPrefix + "/device/" + c.discoveryID() + "/config"
}

func (c *Client) discoveryID() string { return identifier("edge-infer-" + c.Device) }

// component is one entity of the bundle.
type component map[string]any

// bundle collects the components of a device.
type bundle struct {
	topics     Topics
	id         string
	components map[string]component
}

// add puts in an entity under a key that is free.
func (b *bundle) add(key, platform, name string, c component) {
	key = identifier(key)
	for b.components[key] != nil {
		key += "_"
	}
	c["platform"], c["name"], c["unique_id"] = platform, name, b.id+"_"+key
	b.components[key] = c
}

// remove has Home Assistant remove the components of the bundle before that are not in this one: it does when it sees one with nothing but its
// platform. Once a bundle that says so was delivered, the next one is without them.
func (b *bundle) remove(before map[string]component, delivered bool) {
	for key, c := range before {
		removed := len(c) == 1
		if b.components[key] == nil && !(removed && delivered) {
			b.components[key] = component{"platform": c["platform"]}
		}
	}
}

// device adds what belongs to no camera.
func (b *bundle) device() {
	diagnostic := func(key, name, topic, template string, more component) {
		c := component{"state_topic": topic, "value_template": template, "entity_category": "diagnostic"}
		for k, v := range more {
			c[k] = v
		}
		b.add(key, "sensor", name, c)
	}
	diagnostic("backend", "Engine", b.topics.Status(), "{{ value_json.backend }}", nil)
	diagnostic("model", "Model", b.topics.Status(), "{{ value_json.model }}", nil)
	diagnostic("precision", "Precision", b.topics.Status(), "{{ value_json.precision }}", nil)
	diagnostic("uptime", "Uptime", b.topics.Stats(), "{{ value_json.uptime_s }}",
		component{"device_class": "duration", "unit_of_measurement": "s", "state_class": "measurement"})
	diagnostic("engine_time", "Inference time", b.topics.Stats(), "{{ value_json.engine_ms }}",
		component{"device_class": "duration", "unit_of_measurement": "ms", "state_class": "measurement"})
	diagnostic("events_queued", "Queued events", b.topics.Stats(), "{{ value_json.mqtt.events.queued }}",
		component{"state_class": "measurement"})
	diagnostic("events_dropped", "Dropped events", b.topics.Stats(), "{{ value_json.mqtt.events.dropped }}",
		component{"state_class": "total_increasing"})
}

func (b *bundle) camera(camera *AnnouncedCamera) {
	t, name := b.topics, camera.Name
	b.add(name+"_occupied", "binary_sensor", name+" occupied", occupancy(t.Count(name, "all")))
	for _, label := range camera.Labels {
		b.add(name+"_count_"+label, "sensor", name+" "+label, component{"state_topic": t.Count(name, label), "state_class": "measurement"})
		b.add(name+"_snapshot_"+label, "image", name+" "+label+" snapshot", component{
			"image_topic": t.Snapshot(name, label), "content_type": "image/jpeg",
		})
	}
	for _, zone := range camera.Zones {
		b.add(name+"_zone_"+zone, "binary_sensor", name+" "+zone+" occupied", occupancy(t.Zone(name, zone, "all")))
		for _, label := range camera.Labels {
			b.add(name+"_zone_"+zone+"_"+label, "sensor", name+" "+zone+" "+label, component{
				"state_topic": t.Zone(name, zone, label), "state_class": "measurement",
			})
		}
	}
	for _, line := range camera.Lines {
		for _, direction := range [...]string{"in", "out"} {
			b.add(name+"_line_"+line+"_"+direction, "sensor", name+" "+line+" "+direction, component{
				"state_topic": t.Line(name, line), "value_template": "{{ value_json." + direction + " }}", "state_class": "total_increasing",
			})
		}
	}
	b.add(name+"_fps", "sensor", name+" frame rate", component{
		"state_topic": t.Stats(), "value_template": valueOf("cameras", name, "fps_inferred"), "unit_of_measurement": "fps",
		"state_class": "measurement", "entity_category": "diagnostic",
	})
	b.add(name+"_latency", "sensor", name+" latency p99", component{
		"state_topic": t.Stats(), "value_template": valueOf("cameras", name, "latency_p99_ms"), "device_class": "duration",
		"unit_of_measurement": "ms", "state_class": "measurement", "entity_category": "diagnostic",
	})
	b.add(name+"_state", "sensor", name+" state", component{
		"state_topic": t.Status(), "value_template": valueOf("cameras", name, "state"), "entity_category": "diagnostic",
	})
}

func (b *bundle) controls(camera string) {
	control := func(name string, c component) component {
		c["state_topic"], c["command_topic"] = b.topics.State(camera, name), b.topics.Set(camera, name)
		return c
	}
	b.add(camera+"_detect", "switch", camera+" detection", control(controlDetect, component{}))
	b.add(camera+"_threshold", "number", camera+" threshold", control(controlThreshold, component{
		"min": 0, "max": 1, "step": 0.01, "mode": "slider", "entity_category": "config",
	}))
	b.add(camera+"_interval", "number", camera+" frame interval", control(controlInterval, component{
		"min": 1, "max": intervalLimit, "step": 1, "mode": "box", "entity_category": "config",
	}))
	b.add(camera+"_labels", "text", camera+" labels", control(controlLabels, component{"min": 1, "max": 255, "entity_category": "config"}))
	b.button(camera, controlSnapshot, camera+" take snapshot", "")
}

func (b *bundle) button(camera, control, name, class string) {
	c := component{"command_topic": b.topics.Set(camera, control), "payload_press": press}
	if class != "" {
		c["device_class"] = class
	}
	if camera == "" {
		c["entity_category"] = "config"
	}
	b.add(strings.TrimPrefix(camera+"_"+control, "_"), "button", name, c)
}

// occupancy is a binary sensor that is on while the number on a topic is above zero.
func occupancy(topic string) component {
	return component{
		"state_topic": topic, "value_template": "{{ 'ON' if value | int(0) > 0 else 'OFF' }}", "device_class": "occupancy",
	}
}

// valueOf is a template that digs a value out of a JSON payload. The names are quoted, because users choose some of them.
func valueOf(path ...string) string {
	text := []byte("{{ value_json")
	for _, name := range path {
		text = append(text, '[')
		text = appendString(text, name)
		text = append(text, ']')
	}
	return string(append(text, " }}"...))
}

// identifier keeps what Home Assistant allows in discovery topics.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}
