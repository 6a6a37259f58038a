package mqtt

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// DefaultRoot is the first level of every topic.
const DefaultRoot = "edge-infer"

// Topics names every topic of one device. Camera, zone, line and label names that come from users may hold anything; what a topic level
// cannot hold becomes an underscore.
type Topics struct {
	Root   string // may have several levels
	Device string // one level
}

// Check reports names that would break the topic tree.
func (t Topics) Check() error {
	if t.Device == "" {
		return errors.New("device name is empty (set it, or give the machine a host name)")
	}
	if strings.ContainsAny(t.Device, "+/#\x00") || !utf8.ValidString(t.Device) || strings.HasPrefix(t.Device, "$") {
		return fmt.Errorf("device name %q cannot be a topic level (leave out + / # and a leading $)", t.Device)
	}
	if t.Root == "" || strings.ContainsAny(t.Root, "+#\x00") || !utf8.ValidString(t.Root) || strings.HasPrefix(t.Root, "$") ||
		strings.HasPrefix(t.Root, "/") || strings.HasSuffix(t.Root, "/") {
		return fmt.Errorf("topic root %q cannot start a topic (leave out + # and a leading $ or slash)", t.Root)
	}
	if len(t.base()) > 512 {
		return fmt.Errorf("topic root and device name have %d bytes, at most 512 are allowed", len(t.base()))
	}
	return nil
}

func (t Topics) base() string { return t.Root + "/" + t.Device + "/" }

// Available holds online, offline (the will) or stopped (a clean end).
func (t Topics) Available() string { return t.base() + "available" }

// Status holds a Status.
func (t Topics) Status() string { return t.base() + "status" }

// Stats holds Stats.
func (t Topics) Stats() string { return t.base() + "stats" }

// Error holds the answer to a command that was refused.
func (t Topics) Error() string { return t.base() + "error" }

// Detections holds one Detections per frame.
func (t Topics) Detections(camera string) string { return t.camera(camera) + "detections" }

// Events holds the camera's Events.
func (t Topics) Events(camera string) string { return t.camera(camera) + "events" }

// Count holds the number of objects of a label in the picture.
func (t Topics) Count(camera, label string) string { return t.camera(camera) + "count/" + level(label) }

// Zone holds the number of objects of a label in a zone.
func (t Topics) Zone(camera, zone, label string) string {
	return t.camera(camera) + "zone/" + level(zone) + "/" + level(label)
}

// Line holds the crossings of a line in both directions.
func (t Topics) Line(camera, line string) string { return t.camera(camera) + "line/" + level(line) }

// LineLabel holds the crossings of a line by one label.
func (t Topics) LineLabel(camera, line, label string) string {
	return t.Line(camera, line) + "/" + level(label)
}

// Snapshot holds the newest JPEG of a label.
func (t Topics) Snapshot(camera, label string) string {
	return t.camera(camera) + "snapshot/" + level(label)
}

// Set takes commands for one of a camera's controls; with an empty camera, for the device.
func (t Topics) Set(camera, control string) string { return t.control(camera, control) + "/set" }

// State holds the value of a control that is in force.
func (t Topics) State(camera, control string) string { return t.control(camera, control) + "/state" }

func (t Topics) control(camera, control string) string {
	if camera == "" {
		return t.base() + control
	}
	return t.camera(camera) + control
}

func (t Topics) camera(camera string) string { return t.base() + level(camera) + "/" }

// level makes one topic level of a name. The words set and state get a mark, so that no label can publish into a control's topics.
func level(name string) string {
	if name == "" {
		return "_"
	}
	if name == "set" || name == "state" {
		return "_" + name
	}
	if len(name) > 256 {
		name = name[:256]
	}
	return strings.Map(func(r rune) rune {
		if r == '+' || r == '/' || r == '#' || r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '_'
		}
		return r
	}, name)
}
