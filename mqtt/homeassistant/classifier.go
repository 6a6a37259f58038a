package homeassistant

// How long a list of classes may be that Home Assistant is told: with more a sensor's state is any text. A network of a thousand classes
// would have the discovery message be most of what there is.
const (
	maxOptions     = 64
	maxOptionBytes = 2048
)

// stateLimit is how many characters Home Assistant takes for a state.
const stateLimit = "255"

// classifier adds what a network says of the image as a whole: its best class, and as an attribute in tenths how sure it is, because an
// attribute that changes with every frame would only fill Home Assistant's history. While no class reaches the threshold it is unknown.
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
	c.rate()
}

// options are the labels that the state may have, nil for any: they are many or long, or some class has no name.
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
