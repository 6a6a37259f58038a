package homeassistant

import (
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// cameraStates are the camera states of the status payload.
var cameraStates = [...]string{"connecting", "running", "stalled", "lost", "waiting", "hung", "ended", "failed"}

// notableTypes are the event types of the entity that is on by default.
var notableTypes = [...]string{"new", "enter", "loiter", "cross"}

// eventTypes are the event types passed to Home Assistant; track updates are too frequent.
var eventTypes = [...]string{"new", "end", "enter", "leave", "loiter", "cross"}

// intervalLimit is the maximum frame interval.
const intervalLimit = 1000

// cameraDevice collects the entities of one camera.
type cameraDevice struct {
	*device
	d       *Discovery
	camera  *Camera
	machine []any // availability of entities that work without images
	// announced are the keys of the entities that Home Assistant has of this device.
	announced map[string]bool
}

// camera returns the Home Assistant device of a camera; name is its part of identifiers.
func (d *Discovery) camera(a *Announcement, camera *Camera, name string, before Announced) *device {
	machine := availabilityEntry(d.Tree.Available())
	c := cameraDevice{d: d, camera: camera, machine: []any{machine}, announced: d.announced("camera-"+name, before), device: &device{
		name: "camera-" + name, id: d.id() + "_" + name, taken: map[string]bool{},
		availability: []any{machine, map[string]any{"topic": d.Tree.CameraAvailable(camera.Name)}},
	}}
	c.info = map[string]any{
		"identifiers": []string{c.id}, "name": title(camera.Name), "via_device": d.id(), "manufacturer": "edge-infer", "model": "Camera",
	}
	for key, value := range map[string]string{"sw_version": a.Version, "configuration_url": a.URL} {
		if value != "" {
			c.info[key] = value
		}
	}
	c.commonEntities()
	switch {
	case camera.Classifier:
		c.classifier()
	case len(camera.Classes) > 0 || camera.DepthUnit != "":
		c.mapSensors(a.Labels)
	default:
		c.zonesAndLines()
		c.labelEntities(c.shownLabels(a))
		c.threshold()
		c.frames()
	}
	return c.device
}

// commonEntities adds the entities of every camera.
func (c *cameraDevice) commonEntities() {
	t, name := c.d.Tree, c.camera.Name
	if c.d.Control {
		c.add("detect", "switch", "Detection", c.control("detect").with(config{"icon": "mdi:motion-sensor"}))
	}
	states := append([]string{}, cameraStates[:]...)
	c.add("state", "sensor", "State", config{
		"state_topic": t.Status(), "value_template": valueOf("cameras", name, "state"), "device_class": "enum", "options": states,
		"entity_category": diagnostic, "icon": "mdi:cctv", "availability": c.machine,
	})
	if len(c.camera.Labels) == 0 {
		return
	}
	c.add("occupied", "binary_sensor", "Occupied", occupied(t.Count(name, total)))
	c.add("count", "sensor", "Objects", count(t.Count(name, total)).with(config{"icon": "mdi:counter"}))
	c.events()
	c.add("camera", "camera", "Scene", config{"topic": t.Image(name)})
	if c.d.Control {
		c.add("snapshot", "button", "Take snapshot", config{
			"command_topic": t.Set(name, "snapshot"), "payload_press": press, "icon": "mdi:camera", "entity_category": adjustment,
		})
		c.add("snapshot_image", "image", "Snapshot", config{"image_topic": t.RequestedSnapshot(name), "content_type": "image/jpeg"})
	}
}

// events adds two event entities. Each event is a row in Home Assistant's database, so the one that is on leaves out what other entities
// show (an object is gone, a zone is empty) and repetitions; the other one has everything.
func (c *cameraDevice) events() {
	t, name := c.d.Tree, c.camera.Name
	entity := config{"state_topic": t.Events(name), "icon": "mdi:timeline-alert"}
	c.add("events", "event", "Events", entity.with(config{
		"event_types": notableTypes[:],
		"value_template": eventTemplate(`value_json.type in ['` + strings.Join(notableTypes[:], `', '`) +
			`'] and not value_json.repeated | default(false)`),
	}))
	c.add("all_events", "event", "All events", entity.offByDefault().with(config{
		"event_types": eventTypes[:], "value_template": eventTemplate(`value_json.type != 'update'`),
	}))
}

// eventTemplate returns the template that converts an event's payload to Home Assistant's format, or to nothing unless the condition
// holds. The path of an object is omitted, because it may be long.
func eventTemplate(condition string) string {
	return `{% if ` + condition + ` %}` + eventFields + `{% endif %}`
}

const eventFields = `{{ dict(event_type=value_json.type, id=value_json.id, label=value_json.label, ` +
	`object=value_json.object | default(none), score=value_json.top_score | default(none), zone=value_json.zone | default(none), ` +
	`line=value_json.line | default(none), direction=value_json.direction | default(none), time=value_json.time, ` +
	`replayed=value_json.replayed | default(false)) | tojson }}`

func count(topic string) config {
	return config{"state_topic": topic, "state_class": measurement, "unit_of_measurement": "objects"}
}

// control returns the common configuration of a control's entities.
func (c *cameraDevice) control(name string) config {
	return config{
		"state_topic": c.d.Tree.State(c.camera.Name, name), "command_topic": c.d.Tree.Set(c.camera.Name, name), "availability": c.machine,
	}
}

// labelEntities adds what is counted of labels, with a crop of the best view.
func (c *cameraDevice) labelEntities(labels []string) {
	t, name := c.d.Tree, c.camera.Name
	for _, label := range labels {
		text, symbol, counted := title(label), config{"icon": icon(label)}, topic.CountLabel(label)
		c.add("label_"+label, "binary_sensor", text, occupied(t.Count(name, counted)).with(symbol))
		c.add(countKey(label), "sensor", text+" count", count(t.Count(name, counted)).with(symbol))
		c.add("image_"+label, "image", text+" snapshot", config{"image_topic": t.Snapshot(name, label), "content_type": "image/jpeg"})
		for _, zone := range c.camera.Zones {
			c.add("zone_"+zone+"_"+label, "sensor", title(zone)+" "+strings.ToLower(text)+" count", count(t.Zone(name, zone, counted)).with(symbol))
		}
	}
}

// countKey is the key of a label's count, which every label with entities has.
func countKey(label string) string { return "count_" + label }

// shownLabels returns the labels with entities, the most relevant first: the counted ones and, if none is requested, those announced
// before.
func (c *cameraDevice) shownLabels(a *Announcement) []string {
	counted := a.CountedLabels(c.camera)
	return slices.DeleteFunc(ranked(c.camera.Labels), func(label string) bool {
		return !slices.Contains(counted, label) && (len(a.Labels) > 0 || !c.announced[spaced(countKey(label))])
	})
}

// zonesAndLines adds the camera's zones and lines.
func (c *cameraDevice) zonesAndLines() {
	t, name := c.d.Tree, c.camera.Name
	for _, zone := range c.camera.Zones {
		c.add("zone_"+zone, "binary_sensor", title(zone), occupied(t.Zone(name, zone, total)).with(config{"icon": "mdi:vector-polygon"}))
	}
	for _, line := range c.camera.Lines {
		for _, direction := range [...]string{"in", "out"} {
			c.add("line_"+line+"_"+direction, "sensor", title(line)+" "+direction, config{
				"state_topic": t.Line(name, line), "value_template": valueOf(direction), "state_class": "total_increasing",
				"unit_of_measurement": "objects", "icon": "mdi:arrow-" + map[string]string{"in": "right", "out": "left"}[direction] + "-bold",
			})
		}
	}
}

// threshold adds the confidence and, for detectors, the classes that are reported.
func (c *cameraDevice) threshold() {
	if !c.d.Control {
		return
	}
	c.add("threshold", "number", "Threshold", c.control("threshold").with(config{
		"min": 0, "max": 1, "step": 0.01, "mode": "slider", "entity_category": adjustment, "icon": "mdi:tune-variant",
	}))
	if len(c.camera.Labels) == 0 {
		return
	}
	c.add("labels", "text", "Labels", c.control("labels").with(config{
		"min": 1, "max": 255, "entity_category": adjustment, "icon": "mdi:label-multiple",
	}))
}

// frames adds which frames are inferred, and how many.
func (c *cameraDevice) frames() {
	name := c.camera.Name
	if c.d.Control && len(c.camera.Labels) > 0 {
		c.add("interval", "number", "Frame interval", c.control("interval").with(config{
			"min": 1, "max": intervalLimit, "step": 1, "mode": "box", "entity_category": adjustment, "unit_of_measurement": "frames",
			"icon": "mdi:speedometer-slow",
		}))
	}
	rate := config{
		"state_topic": c.d.Tree.Stats(), "value_template": valueOf("cameras", name, "fps_inferred"), "unit_of_measurement": "fps",
		"state_class": measurement, "entity_category": diagnostic, "icon": "mdi:speedometer",
	}
	c.add("fps", "sensor", "Frame rate", rate.offByDefault())
}
