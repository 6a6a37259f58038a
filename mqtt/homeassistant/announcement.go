// Package homeassistant says in Home Assistant's words what a device of edge-infer has: discovery messages for one Home Assistant device
// for the machine and one for each camera. It publishes nothing itself.
package homeassistant

// Announcement is what there is. Names may hold anything.
type Announcement struct {
	Manufacturer, Model, Serial string // of the machine, empty when not known
	Version                     string // of edge-infer
	URL                         string // of the device's web page, empty when it has none
	Cameras                     []Camera
	Temperatures                []string // names of the readings in the stats payload
	Power                       []string
	Loads                       []string
	PowerMode                   bool // the machine has power modes
	// Labels are those that get entities of their own, "*" for all. Without any, each camera has at most EntityLimit entities: those of its
	// zones and lines, and of the labels that people ask for most.
	Labels []string
}

// Camera is what one camera publishes.
type Camera struct {
	Name   string
	Labels []string // that are counted and have snapshots; none when nothing is tracked
	Zones  []string
	Lines  []string
	// Classes are the labels of a network that tells the class of every place; DepthUnit is what its depths are in, for one that tells
	// those. Such a network finds no objects.
	Classes   []string
	DepthUnit string
	// Classifier says that the network tells what the image shows as a whole; Classes are its labels then, as far as they are known.
	Classifier bool
}

// EntityLimit is how many entities a camera has when nobody asks for more. Its zones and lines, which somebody has drawn, may go over it.
const EntityLimit = 12

// everyLabel asks for entities of every label.
const everyLabel = "*"

// common labels are those of models of everyday objects that matter most to who watches a place, in this order, with their icons.
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

// icon is the icon of a label's entities.
func icon(label string) string {
	for _, c := range common {
		if c.label == label {
			return "mdi:" + c.icon
		}
	}
	return "mdi:shape"
}

// ranked are a camera's labels, those that matter most first. The total is not among them.
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
		if label != total && icon(label) == "mdi:shape" {
			rest = append(rest, label)
		}
	}
	return append(first, rest...)
}
