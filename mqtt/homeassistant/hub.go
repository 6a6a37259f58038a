package homeassistant

import "github.com/edge-infer/edge-infer/mqtt/topic"

// availabilityEntry maps the availability topic, which may also be "stopped", to Home Assistant's two states.
func availabilityEntry(of string) map[string]any {
	return map[string]any{"topic": of, "value_template": "{{ 'online' if value == 'online' else 'offline' }}"}
}

const (
	diagnostic  = "diagnostic"
	adjustment  = "config"
	measurement = "measurement"
	press       = "PRESS" // what a button sends
	total       = topic.Total
)

// hub returns the Home Assistant device of the machine.
func (d *Discovery) hub(a *Announcement) *device {
	h := &device{
		name: "hub", id: d.id(), taken: map[string]bool{}, availability: []any{availabilityEntry(d.Tree.Available())},
		info: map[string]any{"identifiers": []string{d.id()}, "name": title(d.Tree.Device)},
	}
	for key, value := range map[string]string{
		"manufacturer": orElse(a.Manufacturer, "edge-infer"), "model": orElse(a.Model, "Detection sensor"), "serial_number": a.Serial,
		"sw_version": a.Version, "configuration_url": a.URL,
	} {
		if value != "" {
			h.info[key] = value
		}
	}
	status := func(name, icon string) config {
		return config{"state_topic": d.Tree.Status(), "value_template": valueOf(name), "entity_category": diagnostic, "icon": icon}
	}
	stats := func(path ...string) config {
		return config{"state_topic": d.Tree.Stats(), "value_template": valueOf(path...), "entity_category": diagnostic}
	}
	h.add("connected", "binary_sensor", "Connected", config{
		"state_topic": d.Tree.Available(), "payload_on": "online", "value_template": "{{ 'online' if value == 'online' else 'OFF' }}",
		"device_class": "connectivity", "entity_category": diagnostic, "availability": []any{},
	})
	h.add("backend", "sensor", "Engine", status("backend", "mdi:chip"))
	h.add("model", "sensor", "Model", status("model", "mdi:file-eye").with(config{"value_template": fileName("model")}))
	h.add("precision", "sensor", "Precision", status("precision", "mdi:decimal"))
	h.add("started", "sensor", "Started", status("started", "mdi:clock-start").with(config{"device_class": "timestamp"}))
	h.add("engine_time", "sensor", "Inference time", stats("engine_ms").offByDefault().with(config{
		"device_class": "duration", "unit_of_measurement": "ms", "state_class": measurement,
	}))
	h.add("events_queued", "sensor", "Waiting events", stats("mqtt", "events", "queued").offByDefault().with(config{
		"unit_of_measurement": "events", "icon": "mdi:tray-full",
	}))
	h.add("events_dropped", "sensor", "Lost events", stats("mqtt", "events", "dropped").with(config{
		"state_class": "total_increasing", "unit_of_measurement": "events", "icon": "mdi:tray-remove",
	}))
	for _, name := range a.Temperatures {
		h.add("temperature_"+name, "sensor", sensorTitle(name)+" temperature", stats("temperature_c", name).with(config{
			"device_class": "temperature", "unit_of_measurement": "°C", "state_class": measurement,
			"value_template": "{{ " + field("temperature_c", name) + " | round(0) | int }}",
		}))
	}
	for _, name := range a.Power {
		h.add("power_"+name, "sensor", sensorTitle(name)+" power", stats("power_w", name).offByDefault().with(config{
			"device_class": "power", "unit_of_measurement": "W", "state_class": measurement,
		}))
	}
	for _, name := range a.Loads {
		h.add("load_"+name, "sensor", sensorTitle(name)+" load", stats("load_pct", name).offByDefault().with(config{
			"unit_of_measurement": "%", "state_class": measurement, "icon": "mdi:gauge",
		}))
	}
	if a.PowerMode {
		h.add("power_mode", "sensor", "Power mode", stats("power_mode").with(config{"icon": "mdi:lightning-bolt"}))
	}
	if len(a.Temperatures)+len(a.Loads) > 0 {
		h.add("throttled", "binary_sensor", "Slowed down", stats("throttled").with(config{
			"value_template": "{{ 'ON' if value_json.throttled else 'OFF' }}", "device_class": "problem",
		}))
	}
	if d.Control {
		h.add("reload", "button", "Reload configuration", config{
			"command_topic": d.Tree.Set("", "reload"), "payload_press": press, "entity_category": adjustment, "icon": "mdi:file-refresh",
		})
		h.add("restart", "button", "Restart", config{
			"command_topic": d.Tree.Set("", "restart"), "payload_press": press, "entity_category": adjustment, "device_class": "restart",
		})
	}
	return h
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
