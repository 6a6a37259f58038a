package homeassistant

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/topic"
)

func discovery() *Discovery {
	return &Discovery{Prefix: "homeassistant", Tree: topic.Tree{Root: "edge-infer", Device: "gate 7"}, Control: true, Limit: 16 << 10}
}

// everyday are the first labels of a model of 80 classes.
func everyday(n int) []string {
	labels := []string{"person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light"}
	for len(labels) < n {
		labels = append(labels, fmt.Sprint("thing ", len(labels)))
	}
	return labels[:n]
}

type parsed struct {
	Device struct {
		Identifiers               []string
		Name, Manufacturer, Model string
		ViaDevice                 string `json:"via_device"`
		URL                       string `json:"configuration_url"`
		Version                   string `json:"sw_version"`
	}
	Availability []map[string]string
	Components   map[string]map[string]any
}

// messages are the parsed discovery messages by topic.
func messages(t *testing.T, d *Discovery, a *Announcement, before Announced) (map[string]parsed, Announced) {
	t.Helper()
	made, after, err := d.Messages(a, before)
	require.NoError(t, err)
	found := map[string]parsed{}
	for _, m := range made {
		var p parsed
		if len(m.Payload) > 0 {
			require.NoError(t, json.Unmarshal(m.Payload, &p))
		}
		require.Regexp(t, `^homeassistant/device/[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+/config$`, m.Topic)
		require.NotContains(t, found, m.Topic)
		found[m.Topic] = p
	}
	return found, after
}

func TestADeviceForEachCameraUnderAHub(t *testing.T) {
	found, _ := messages(t, discovery(), &Announcement{
		Manufacturer: "NVIDIA", Model: "Orin Nano", Version: "1.2", URL: "http://gate:8080/", Temperatures: []string{"cpu-thermal"},
		Cameras: []Camera{{Name: "front_door", Labels: everyday(80), Zones: []string{"yard"}, Lines: []string{"gate"}}, {Name: `odd "x"/#`}},
	}, nil)
	require.Len(t, found, 3)
	hub := found["homeassistant/device/edge-infer-gate_7-b6af4f65/hub/config"]
	assert.Equal(t, "Gate 7", hub.Device.Name)
	assert.Equal(t, "NVIDIA", hub.Device.Manufacturer)
	assert.Equal(t, "http://gate:8080/", hub.Device.URL)
	front := found["homeassistant/device/edge-infer-gate_7-b6af4f65/camera-front_door/config"]
	assert.Equal(t, "Front door", front.Device.Name)
	assert.Equal(t, hub.Device.Identifiers[0], front.Device.ViaDevice)
	assert.Equal(t, "http://gate:8080/", front.Device.URL)
	assert.Equal(t, "1.2", front.Device.Version)
	require.Len(t, front.Availability, 2)
	assert.Equal(t, "edge-infer/gate 7/front_door/available", front.Availability[1]["topic"])
	odd := found["homeassistant/device/edge-infer-gate_7-b6af4f65/camera-odd__x___-13c6207b/config"]
	assert.Equal(t, `{{ value_json["cameras"]["odd \"x\"/#"]["state"] }}`, odd.Components["state"]["value_template"])
	assert.NotContains(t, odd.Components, "occupied", "nothing is counted where nothing is tracked")

	unique := map[any]bool{}
	for _, p := range found {
		for key, c := range p.Components {
			assert.False(t, unique[c["unique_id"]], "%s", key)
			unique[c["unique_id"]] = true
			name := c["name"].(string)
			assert.Regexp(t, regexp.MustCompile(`^[A-Z]`), name, "names are written as people write them")
			assert.NotContains(t, name, "_")
			if c["platform"] == "sensor" && c["state_class"] != nil {
				assert.NotEmpty(t, c["unit_of_measurement"], name)
			}
			if c["device_class"] == nil && c["platform"] != "camera" && c["platform"] != "image" {
				assert.NotEmpty(t, c["icon"], name)
			}
		}
	}
}

func TestEntitiesOfACamera(t *testing.T) {
	d := discovery()
	keys := func(camera Camera, before Announced, asked ...string) []string {
		camera.Name = "front"
		found, _ := messages(t, d, &Announcement{Cameras: []Camera{camera}, Labels: asked}, before)
		var keys []string
		for topic, p := range found {
			if strings.HasSuffix(topic, "-front/config") {
				keys = slices.AppendSeq(keys, maps.Keys(p.Components))
			}
		}
		slices.Sort(keys)
		return keys
	}
	with := func(more ...string) []string {
		all := append([]string{
			"all_events", "camera", "count", "detect", "events", "fps", "interval", "labels", "occupied", "snapshot", "snapshot_image", "state",
			"threshold",
		}, more...)
		slices.Sort(all)
		return all
	}
	person := []string{"count_person", "image_person", "label_person"}
	assert.Equal(t, with(), keys(Camera{Labels: everyday(80)}, nil), "nothing was seen yet")
	assert.Equal(t, with(person...), keys(Camera{Labels: everyday(80), Seen: []string{"person"}}, nil))
	drawn := Camera{Labels: everyday(80), Seen: []string{"person"}, Zones: []string{"yard"}, Lines: []string{"gate"}}
	assert.Equal(t, with(append(person, "zone_yard", "zone_yard_person", "line_gate_in", "line_gate_out")...), keys(drawn, nil),
		"what is drawn is added and takes nothing away")

	// What was seen before a restart stays, unless the camera no longer reports it.
	_, before, err := d.Messages(&Announcement{Cameras: []Camera{{Name: "front", Labels: everyday(80), Seen: []string{"person", "bus"}}}}, nil)
	require.NoError(t, err)
	assert.Equal(t, with(append(person, "count_bus", "image_bus", "label_bus")...), keys(Camera{Labels: everyday(80)}, before))
	found, _ := messages(t, d, &Announcement{Cameras: []Camera{{Name: "front", Labels: []string{"person"}}}}, before)
	components := found["homeassistant/device/edge-infer-gate_7-b6af4f65/camera-front/config"].Components
	assert.Equal(t, map[string]any{"platform": "sensor"}, components["count_bus"])
	assert.Equal(t, "edge-infer/gate 7/front/count/person", components["count_person"]["state_topic"])
	assert.Equal(t, "sensor.edge_infer_gate_7_b6af4f65_front_count_person", components["count_person"]["default_entity_id"])
	assert.Equal(t, "edge_infer_gate_7_b6af4f65_front_count_person", components["count_person"]["object_id"])

	asked := keys(Camera{Labels: everyday(80), Zones: []string{"yard"}, Seen: []string{"person"}}, nil, "car", "boat")
	for _, key := range []string{"label_car", "count_boat", "image_car", "zone_yard_boat", "zone_yard"} {
		assert.Contains(t, asked, key)
	}
	assert.NotContains(t, asked, "label_person")
	assert.Greater(t, len(keys(Camera{Labels: everyday(80), Zones: []string{"yard"}}, nil, "*")), 4*80)
	d.Control = false
	for _, key := range []string{"detect", "snapshot", "snapshot_image", "threshold", "interval", "labels"} {
		assert.NotContains(t, keys(Camera{Labels: everyday(2)}, nil), key)
	}
}

// TestNothingFillsTheHistory: states that change with every statistics message are off by default, and settings are among the settings.
func TestNothingFillsTheHistory(t *testing.T) {
	found, _ := messages(t, discovery(), &Announcement{
		Temperatures: []string{"cpu"}, Power: []string{"VDD_IN"}, Loads: []string{"cpu"},
		Cameras: []Camera{{Name: "front", Labels: everyday(80), Seen: everyday(2)}},
	}, nil)
	for _, p := range found {
		for key, c := range p.Components {
			switch c["platform"] {
			case "button", "number", "text":
				assert.Equal(t, "config", c["entity_category"], key)
			}
			rounded := strings.Contains(fmt.Sprint(c["value_template"]), "round(0)")
			if strings.HasSuffix(fmt.Sprint(c["state_topic"]), "/stats") && c["state_class"] == "measurement" {
				assert.True(t, rounded || c["enabled_by_default"] == false, key)
			}
		}
	}
	hub := found["homeassistant/device/edge-infer-gate_7-b6af4f65/hub/config"].Components
	assert.NotContains(t, hub, "uptime")
	assert.Equal(t, "timestamp", hub["started"]["device_class"])
	assert.Equal(t, false, hub["events_queued"]["enabled_by_default"])
	assert.Equal(t, "CPU load", hub["load_cpu"]["name"])
	assert.Equal(t, `{{ (value_json["model"] | string).split('/') | last }}`, hub["model"]["value_template"], "no directories of the machine")

	front := found["homeassistant/device/edge-infer-gate_7-b6af4f65/camera-front/config"].Components
	assert.Equal(t, []any{"new", "enter", "loiter", "cross"}, front["events"]["event_types"])
	assert.Contains(t, front["events"]["value_template"],
		`{% if value_json.type in ['new', 'enter', 'loiter', 'cross'] and not value_json.repeated | default(false) %}`)
	assert.NotContains(t, front["events"], "enabled_by_default")
	assert.Equal(t, false, front["all_events"]["enabled_by_default"])
	assert.Contains(t, front["all_events"]["value_template"], `{% if value_json.type != 'update' %}`)
}

func TestALargeDeviceIsAnnouncedInParts(t *testing.T) {
	d := discovery()
	d.Limit = 4000
	a := &Announcement{Cameras: []Camera{{Name: "front", Labels: everyday(40)}, {Name: "2-front", Labels: everyday(3)}}, Labels: []string{"*"}}
	made, announced, err := d.Messages(a, nil)
	require.NoError(t, err)
	parts := 0
	for _, m := range made {
		assert.LessOrEqual(t, len(m.Payload), d.Limit, m.Topic)
		if strings.Contains(m.Topic, "-front/") {
			parts++
		}
	}
	assert.Greater(t, parts, 5)
	where := map[string]string{}
	for topic, entities := range announced {
		for key := range entities {
			where[topic[:len(topic)-len("/config")]+"/"+key] = topic
		}
	}

	// Fewer labels: what stays stays where it was, what goes is removed there, a part without any is cleared.
	a.Cameras[0].Labels = everyday(40)[5:8]
	found, after := messages(t, d, a, announced)
	cleared := 0
	for topic, p := range found {
		if p.Components == nil {
			cleared++
			for _, e := range after[topic] {
				assert.True(t, e.Removed)
			}
			continue
		}
		for key, c := range p.Components {
			before, known := announced[topic][key]
			require.True(t, known, "%s has moved to %s", key, topic)
			if len(c) == 1 {
				assert.Equal(t, before.Platform, c["platform"])
				assert.True(t, after[topic][key].Removed)
			}
		}
	}
	assert.Positive(t, cleared)
	for topic := range after {
		after.Settle(topic)
	}
	again, last := messages(t, d, a, after)
	for _, p := range again {
		for key, c := range p.Components {
			assert.Greater(t, len(c), 1, "%s was removed before", key)
		}
	}
	removed, marked := last.RemoveAll()
	assert.Len(t, removed, len(last))
	for topic := range marked {
		marked.Settle(topic)
	}
	assert.Empty(t, marked)
}

func TestSensorTitle(t *testing.T) {
	for name, want := range map[string]string{
		"cpu": "CPU", "gpu-thermal": "GPU thermal", "soc0": "SOC0", "VDD_CPU_CV": "VDD CPU CV", "memory": "Memory", "GPU 0": "GPU 0",
	} {
		assert.Equal(t, want, sensorTitle(name))
	}
}

func TestTitle(t *testing.T) {
	for name, want := range map[string]string{
		"front_door": "Front door", "traffic light": "Traffic light", "VDD_IN": "VDD IN", "tür": "Tür", "élan-vital": "Élan vital", "": "",
		"__": "__", "cam0": "Cam0",
	} {
		assert.Equal(t, want, title(name))
	}
}

// Machines, cameras and labels with different names have different ids, also where Home Assistant does not allow their characters.
func TestIdentifiersAreDistinct(t *testing.T) {
	known := map[string]string{}
	for _, name := range []string{
		"kü", "kö", "k_", "k__", "k 1", "k_1", "k-1", "k.1", "k/1", "", "_",
		identifier("kü"), identifier(identifier("kü")),
	} {
		id := identifier(name)
		require.NotContains(t, known, id, "%q and %q", name, known[id])
		known[id] = name
	}
	for _, name := range []string{"gate", "front_door", "Cam-7", "orin-nano_2"} {
		require.Equal(t, name, identifier(name))
	}
	topics := map[string]bool{}
	for _, machine := range []string{"kü", "kö"} {
		d := discovery()
		d.Tree.Device = machine
		found, _ := messages(t, d, &Announcement{
			Cameras: []Camera{{Name: "tür", Labels: []string{"a/b", "a_b", "a b", "all"}}, {Name: "tor"}}, Labels: []string{"*"},
		}, nil)
		states := map[any]bool{}
		for topic, p := range found {
			require.False(t, topics[topic], topic)
			topics[topic] = true
			for key, c := range p.Components {
				if strings.HasPrefix(key, "count") {
					require.False(t, states[c["state_topic"]], "%v", c["state_topic"])
					states[c["state_topic"]] = true
				}
			}
		}
		require.Len(t, states, 5, "four labels and the total")
	}
}
