package homeassistant

// Limits of the class list in a discovery message; with more classes the sensor's state is any text. A thousand classes would dominate the
// message.
const (
	maxOptions     = 64
	maxOptionBytes = 2048
)

// stateLimit is the maximum length of a state in Home Assistant.
const stateLimit = "255"

// classifier adds the best class of an image classifier, with its score in tenths as an attribute, because an attribute that changes with
// every frame fills Home Assistant's history. It is unknown while no class reaches the threshold.
func (c *cameraDevice) classifier() {
	detections := c.d.Tree.Detections(c.camera.Name)
	sensor := config{
		"state_topic": detections, "icon": "mdi:tag",
		"value_template":           "{{ value_json.detections[0].label[:" + stateLimit + "] if value_json.detections else none }}",
		"json_attributes_topic":    detections,
		"json_attributes_template": "{{ dict(score=value_json.detections[0].score | round(1) if value_json.detections else none) | tojson }}",
	}
	if options := c.options(); options != nil {
		sensor = sensor.with(config{"device_class": "enum", "options": options})
	}
	c.add("class", "sensor", "Class", sensor)
	c.threshold()
	c.frames()
}

// options returns the possible states, or nil if there are too many or some class has no name.
func (c *cameraDevice) options() (options []string) {
	size, seen := 0, map[string]bool{}
	for _, label := range c.camera.Classes {
		if size += len(label); label == "" || size > maxOptionBytes || len(options) == maxOptions {
			return nil
		}
		if !seen[label] {
			options = append(options, label)
		}
		seen[label] = true
	}
	return options
}
