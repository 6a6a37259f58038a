// Package topic builds the topics of a device.
package topic

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// DefaultRoot is the first level of every topic.
const DefaultRoot = "edge-infer"

// Tree builds the topics of one device. Names of cameras, zones, lines and labels may contain any character; those not allowed in a topic
// level are percent-encoded.
type Tree struct {
	Root   string // may have several levels
	Device string // one level
}

// Payloads of the availability topics.
const (
	Online  = "online"
	Offline = "offline"
	Stopped = "stopped"
)

// Check returns an error if a name cannot be part of a topic.
func (t Tree) Check() error {
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
	if len(t.Base()) > 512 {
		return fmt.Errorf("topic root and device name have %d bytes, at most 512 are allowed", len(t.Base()))
	}
	return nil
}

// Base returns the prefix of every topic of the device.
func (t Tree) Base() string { return t.Root + "/" + t.Device + "/" }

// Available holds online, offline (the will) or stopped (a clean end).
func (t Tree) Available() string { return t.Base() + "available" }

// CameraAvailable holds online, or offline while there is no image of the camera.
func (t Tree) CameraAvailable(camera string) string { return t.camera(camera) + "available" }

// Status holds a Status.
func (t Tree) Status() string { return t.Base() + "status" }

// Machine holds which machine publishes under the device's name.
func (t Tree) Machine() string { return t.Base() + "machine" }

// Stats holds Stats.
func (t Tree) Stats() string { return t.Base() + "stats" }

// Error holds the answer to a command that was refused.
func (t Tree) Error() string { return t.Base() + "error" }

// NextJob takes the job that the device shall do, retained.
func (t Tree) NextJob() string { return t.Base() + "jobs/notify-next" }

// Job holds how far the device has come with a job.
func (t Tree) Job(id string) string { return t.Base() + "jobs/" + Level(id) + "/update" }

// Detections holds one Detections per frame.
func (t Tree) Detections(camera string) string { return t.camera(camera) + "detections" }

// Events holds the camera's Events.
func (t Tree) Events(camera string) string { return t.camera(camera) + "events" }

// Count holds the number of objects of a label in the image.
func (t Tree) Count(camera, label string) string { return t.camera(camera) + "count/" + Level(label) }

// Zone holds the number of objects of a label in a zone.
func (t Tree) Zone(camera, zone, label string) string {
	return t.camera(camera) + "zone/" + Level(zone) + "/" + Level(label)
}

// Line holds the crossings of a line in both directions.
func (t Tree) Line(camera, line string) string { return t.camera(camera) + "line/" + Level(line) }

// LineLabel holds the crossings of a line by one label.
func (t Tree) LineLabel(camera, line, label string) string {
	return t.Line(camera, line) + "/" + Level(label)
}

// Image holds the newest scene of the camera.
func (t Tree) Image(camera string) string { return t.camera(camera) + "image" }

// RequestedSnapshot holds the scene that a command asked for last.
func (t Tree) RequestedSnapshot(camera string) string { return t.camera(camera) + "snapshot" }

// Snapshot holds the newest JPEG of an object of a label.
func (t Tree) Snapshot(camera, label string) string {
	return t.camera(camera) + "snapshot/" + Level(label)
}

// Set takes commands for one of a camera's controls; with an empty camera, for the device.
func (t Tree) Set(camera, control string) string { return t.control(camera, control) + "/set" }

// State holds the value of a control that is in force.
func (t Tree) State(camera, control string) string { return t.control(camera, control) + "/state" }

func (t Tree) control(camera, control string) string {
	if camera == "" {
		return t.Base() + control
	}
	return t.camera(camera) + control
}

func (t Tree) camera(camera string) string { return t.Base() + Level(camera) + "/" }

// States returns filters that match the retained topics of cameras except images.
func (t Tree) States() []string {
	camera := t.Base() + "+/"
	return []string{camera + "available", camera + "+/state", camera + "count/+", camera + "zone/+/+", camera + "line/+", camera + "line/+/+"}
}

// Images returns filters that match the retained images of a camera, given by its topic level.
func (t Tree) Images(camera string) []string {
	return []string{t.Base() + camera + "/image", t.Base() + camera + "/snapshot", t.Base() + camera + "/snapshot/+"}
}

// Place returns the topic levels of the camera and, if any, the zone or line that a retained topic belongs to. ok is false for other
// topics, such as commands.
func (t Tree) Place(topic string) (camera, zone, line string, ok bool) {
	rest, ok := strings.CutPrefix(topic, t.Base())
	levels := strings.Split(rest, "/")
	if !ok || len(levels) < 2 {
		return "", "", "", false
	}
	camera = levels[0]
	switch what := levels[1:]; {
	case len(what) == 1:
		ok = what[0] == "available" || what[0] == "image" || what[0] == "snapshot"
	case what[0] == "zone":
		zone, ok = what[1], len(what) == 3
	case what[0] == "line":
		line, ok = what[1], len(what) <= 3
	default:
		ok = len(what) == 2 && (what[1] == "state" || what[0] == "count" || what[0] == "snapshot")
	}
	return camera, zone, line, ok
}

// levelLimit is the maximum length of a topic level in bytes.
const levelLimit = 256

// Level converts a name to one topic level, different names to different levels. What is not allowed in a level is percent-encoded, as in
// a%2Fb. "set" and "state" get a prefix, so that no label can collide with a control's topics. The end of a very long name becomes a hash.
func Level(name string) string {
	switch name {
	case "":
		return "_"
	case "set", "state":
		return "_" + name
	case "_", "_set", "_state":
		return "%5F" + name[1:]
	}
	level := escaped(name)
	if len(level) > levelLimit {
		sum := sha256.Sum256([]byte(name))
		end := levelLimit - 1 - hashLength
		for !utf8.RuneStart(level[end]) {
			end--
		}
		level = level[:end] + "~" + hex.EncodeToString(sum[:])[:hashLength]
	}
	return level
}

// hashLength is the number of hexadecimal digits after a name that was cut.
const hashLength = 16

// escaped percent-encodes what a topic level must not contain, and a percent sign that would look like the beginning of that.
func escaped(name string) string {
	var out strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if allowed(r) && !(r == '%' && isEscape(name[i:])) {
			out.WriteString(name[i : i+size])
		} else {
			for _, b := range []byte(name[i : i+size]) {
				fmt.Fprintf(&out, "%%%02X", b)
			}
		}
		i += size
	}
	return out.String()
}

func allowed(r rune) bool {
	return r != '+' && r != '/' && r != '#' && r >= ' ' && r != 0x7f && r != utf8.RuneError
}

// isEscape reports whether a text begins with a percent sign and two hexadecimal digits in capitals.
func isEscape(text string) bool {
	digits := "0123456789ABCDEF"
	return len(text) > 2 && text[0] == '%' && strings.IndexByte(digits, text[1]) >= 0 && strings.IndexByte(digits, text[2]) >= 0
}

// Total is the label of the topics that count the objects of all labels.
const Total = "all"

// CountLabel returns the label under which the objects of a label are counted. A label called like the total gets a prefix.
func CountLabel(label string) string {
	if strings.TrimLeft(label, "_") == Total {
		return "_" + label
	}
	return label
}
