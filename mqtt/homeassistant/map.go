package homeassistant

import (
	"slices"
	"strings"
)

// shownClasses is how many classes of a place have a sensor where nobody asks for more.
const shownClasses = 3

// places adds what a network says of every place: shares of classes or the depth in the middle, of each zone, or of the image where there
// are no zones. wanted are the labels that get entities of their own, as in Announcement.
func (c *cameraDevice) mapSensors(wanted []string) {
	zones := c.camera.Zones
	if len(zones) == 0 {
		zones = []string{""}
	}
	for _, zone := range zones {
		if c.camera.DepthUnit != "" {
			c.depth(zone)
			continue
		}
		labels := ranked(c.camera.Classes)
		if len(wanted) == 0 {
			labels = labels[:min(shownClasses, len(labels))]
		}
		for _, label := range labels {
			if len(wanted) == 0 || slices.Contains(wanted, everyLabel) || slices.Contains(wanted, label) {
				c.share(zone, label)
			}
		}
	}
	c.rate()
}

// mapField is where the detections payload has a zone's part of a field; the image's where the zone has no name.
func mapField(field, zone string) string {
	if zone == "" {
		return "value_json." + field
	}
	return "value_json." + field + ".zones[" + quoted(zone) + "]"
}

// share is what a class takes of a zone, in whole percent: states that change with every frame would only fill Home Assistant's history.
func (c *cameraDevice) share(zone, label string) {
	name := title(label)
	if zone != "" {
		name = title(zone) + " " + strings.ToLower(name)
	}
	c.add("share_"+zone+"_"+label, "sensor", name+" share", config{
		"state_topic": c.d.Tree.Detections(c.camera.Name), "state_class": measurement, "unit_of_measurement": "%", "icon": "mdi:texture-box",
		"value_template": "{{ ((" + mapField("semantic", zone) + `.classes | selectattr("label", "eq", ` + quoted(label) +
			`) | map(attribute="share") | sum) * 100) | round(0) | int }}`,
	})
}

// depth is the median of a zone. One that is not known is None, which Home Assistant takes for that.
func (c *cameraDevice) depth(zone string) {
	name := "Depth"
	if zone != "" {
		name = title(zone) + " depth"
	}
	at := mapField("depth", zone) + ".median"
	sensor := config{
		"state_topic": c.d.Tree.Detections(c.camera.Name), "state_class": measurement, "icon": "mdi:arrow-expand-horizontal",
		"value_template": "{{ " + at + " | round(1) if " + at + " is not none else none }}",
	}
	if c.camera.DepthUnit == "m" {
		sensor = sensor.with(config{"unit_of_measurement": "m", "device_class": "distance"})
	}
	c.add("depth_"+zone, "sensor", name, sensor)
}
