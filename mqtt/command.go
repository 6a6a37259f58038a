package mqtt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Names of the controls in topics.
const (
	controlDetect    = "detect"
	controlThreshold = "threshold"
	controlInterval  = "interval"
	controlLabels    = "labels"
	controlSnapshot  = "snapshot"
	controlReload    = "reload"
	controlRestart   = "restart"
)

// allLabels selects every label.
const allLabels = "*"

// Limits of a command.
const (
	maxCommandBytes    = 4096
	maxCommandLabels   = 100
	maxCommandInterval = 1000 // frames
)

// buttonPress is the payload sent by Home Assistant's buttons.
const buttonPress = "PRESS"

// command is a parsed message to a set topic.
type command struct {
	Camera, Control string // Camera is empty for the device's own
	On              bool
	Threshold       float64
	Interval        int
	Labels          []string // nil: all
}

// errNoCommand is returned for messages that are not commands, such as the empty payload that clears a retained message.
var errNoCommand = errors.New("no command")

// parseCommand parses a message below base; name maps a topic level to a camera name.
func parseCommand(base, topic string, payload []byte, name func(level string) (string, bool)) (command, error) {
	rest, found := strings.CutPrefix(topic, base)
	if !found {
		return command{}, errNoCommand
	}
	path, found := strings.CutSuffix(rest, "/set")
	if !found || len(payload) == 0 {
		return command{}, errNoCommand
	}
	var c command
	if camera, control, found := strings.Cut(path, "/"); found {
		known := false
		if c.Camera, known = name(camera); !known {
			return command{}, errors.New("unknown camera")
		}
		c.Control = control
	} else {
		c.Control = path
	}
	if len(payload) > maxCommandBytes {
		return command{}, fmt.Errorf("%d bytes, at most %d are read", len(payload), maxCommandBytes)
	}
	value := strings.TrimSpace(string(payload))
	if !utf8.ValidString(value) {
		return command{}, errors.New("not UTF-8 text")
	}
	return c, c.parseValue(value)
}

// parseValue parses the control's value.
func (c *command) parseValue(value string) error {
	ofDevice := c.Control == controlReload || c.Control == controlRestart
	if ofDevice != (c.Camera == "") {
		return errors.New("unknown control")
	}
	switch c.Control {
	case controlDetect:
		switch strings.ToUpper(value) {
		case "ON":
			c.On = true
		case "OFF":
		default:
			return fmt.Errorf("want ON or OFF, got %s", quoteForLog(value))
		}
	case controlThreshold:
		threshold, err := strconv.ParseFloat(value, 64)
		if err != nil || strings.Trim(value, "0123456789.eE+-") != "" || !(threshold >= 0 && threshold <= 1) {
			return fmt.Errorf("want a number from 0 to 1, got %s", quoteForLog(value))
		}
		c.Threshold = threshold
	case controlInterval:
		interval, err := strconv.Atoi(value)
		if err != nil || interval < 1 || interval > maxCommandInterval {
			return fmt.Errorf("want a whole number from 1 to %d, got %s", maxCommandInterval, quoteForLog(value))
		}
		c.Interval = interval
	case controlLabels:
		if value == allLabels {
			return nil
		}
		c.Labels = strings.Split(value, ",")
		for i, label := range c.Labels {
			c.Labels[i] = strings.TrimSpace(label)
			if c.Labels[i] == "" {
				return fmt.Errorf("want labels with commas between them, or * for all, got %s", quoteForLog(value))
			}
		}
		if len(c.Labels) > maxCommandLabels {
			return fmt.Errorf("%d labels, at most %d are taken", len(c.Labels), maxCommandLabels)
		}
	case controlSnapshot, controlReload, controlRestart:
		if value != buttonPress {
			return fmt.Errorf("want %s, got %s", buttonPress, quoteForLog(value))
		}
	default:
		return errors.New("unknown control")
	}
	return nil
}

// quoteForLog quotes the start of untrusted text.
func quoteForLog(text string) string {
	if len(text) > 40 {
		return strconv.QuoteToASCII(text[:40]) + " and more"
	}
	return strconv.QuoteToASCII(text)
}
