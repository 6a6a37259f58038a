package homeassistant

import (
	"slices"
	"strings"
)

// shownClasses is the default number of classes per zone with a sensor.
const shownClasses = 3

// mapSensors adds the sensors of a segmentation or depth map: class shares or the median depth of each zone, or of the image without zones.
// wanted are Announcement.Labels.
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
	c.frames()
}

// mapField returns the template path of a field of the detections payload for a zone, or for the image if zone is empty.
func mapField(field, zone string) string {
	if zone == "" {
		return "value_json." + field
	}
	return "value_json." + field + ".zones[" + quoted(zone) + "]"
}

// share adds the share of a class in a zone in whole percent, because states that change with every frame fill Home Assistant's history.
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

// depth adds the median depth of a zone; unknown depths are None.
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
