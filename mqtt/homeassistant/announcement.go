// Package homeassistant builds Home Assistant's MQTT discovery messages: one Home Assistant device for the machine and one per camera. It
// publishes nothing itself.
package homeassistant

import "slices"

// Announcement describes the machine and its cameras. Names may contain any character.
type Announcement struct {
	Manufacturer, Model, Serial string // of the machine, empty if unknown
	Version                     string // of edge-infer
	URL                         string // of the device's web page, empty when it has none
	Cameras                     []Camera
	Temperatures                []string // names of the readings in the stats payload
	Power                       []string
	Loads                       []string
	PowerMode                   bool // the machine has power modes
	// Labels get entities of their own, "*" for all. If empty, these are Camera.Seen.
	Labels []string
}

// Camera describes what a camera publishes.
type Camera struct {
	Name   string
	Labels []string // counted labels with snapshots; none without tracking
	Seen   []string // those of Labels with entities, counted or named by the configuration; announced before are added to them
	Zones  []string
	Lines  []string
	// Classes are the labels of a semantic segmentation model; DepthUnit is the unit of a depth model. Such models detect no objects.
	Classes   []string
	DepthUnit string
	// Classifier is set for an image classifier; Classes are then its labels, if known.
	Classifier bool
}

// CountedLabels returns the labels of a camera whose counts have a value from the start: those that are requested, or else those seen.
func (a *Announcement) CountedLabels(camera *Camera) []string {
	chosen := camera.Seen
	if len(a.Labels) > 0 {
		chosen = a.Labels
	}
	return slices.DeleteFunc(ranked(camera.Labels), func(label string) bool {
		return !slices.Contains(chosen, label) && !slices.Contains(a.Labels, everyLabel)
	})
}

// everyLabel selects every label.
const everyLabel = "*"

// common lists the most relevant labels of surveillance in order, with their icons.
var common = [...]struct{ label, icon string }{
	{"person", "account"},
	{"face", "face-recognition"},
	{"car", "car"},
	{"package", "package-variant"},
	{"dog", "dog"},
	{"cat", "cat"},
	{"truck", "truck"},
	{"bus", "bus"},
	{"bicycle", "bicycle"},
	{"motorcycle", "motorbike"},
	{"bird", "bird"},
	{"license_plate", "card-text"},
}

// icon returns the icon of a label's entities.
func icon(label string) string {
	for _, c := range common {
		if c.label == label {
			return "mdi:" + c.icon
		}
	}
	return "mdi:shape"
}

// ranked returns a camera's labels, the most relevant first.
func ranked(labels []string) []string {
	var first, rest []string
	for _, c := range common {
		for _, label := range labels {
			if label == c.label {
				first = append(first, label)
			}
		}
	}
	for _, label := range labels {
		if icon(label) == "mdi:shape" {
			rest = append(rest, label)
		}
	}
	return append(first, rest...)
}
