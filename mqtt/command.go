package mqtt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The controls, as they are called in topics.
const (
	controlDetect    = "detect"
	controlThreshold = "threshold"
	controlInterval  = "interval"
	controlLabels    = "labels"
	controlSnapshot  = "snapshot"
	controlReload    = "reload"
	controlRestart   = "restart"
)

const (
	inboundLimit  = 64   // commands that wait to be carried out; more are refused
	commandLimit  = 4096 // bytes of a command
	labelLimit    = 100  // labels in a command
	intervalLimit = 1000
	allLabels     = "*"
	press         = "PRESS" // what Home Assistant's buttons send
)

// command is a message to a set topic that was understood.
type command struct {
	camera, control string
	on              bool
	threshold       float64
	interval        int
	labels          []string
}

// errNoCommand is for messages that are not commands: an empty payload is what clearing a retained message sends.
var errNoCommand = errors.New("no command")

// parseCommand reads a message below base; name turns a topic level into a camera's name.
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
		if c.camera, known = name(camera); !known {
			return command{}, errors.New("unknown camera")
		}
		c.control = control
	} else {
		c.control = path
	}
	if len(payload) > commandLimit {
		return command{}, fmt.Errorf("%d bytes, at most %d are read", len(payload), commandLimit)
	}
	value := strings.TrimSpace(string(payload))
	if !utf8.ValidString(value) {
		return command{}, errors.New("not UTF-8 text")
	}
	return c, c.read(value)
}

// read fills in the value that the control takes.
func (c *command) read(value string) error {
	ofDevice := c.control == controlReload || c.control == controlRestart
	if ofDevice != (c.camera == "") {
		return errors.New("unknown control")
	}
	switch c.control {
	case controlDetect:
		switch strings.ToUpper(value) {
		case "ON":
			c.on = true
		case "OFF":
		default:
			return fmt.Errorf("want ON or OFF, got %s", quote(value))
		}
	case controlThreshold:
		threshold, err := strconv.ParseFloat(value, 64)
		if err != nil || strings.Trim(value, "0123456789.eE+-") != "" || !(threshold >= 0 && threshold <= 1) {
			return fmt.Errorf("want a number from 0 to 1, got %s", quote(value))
		}
		c.threshold = threshold
	case controlInterval:
		interval, err := strconv.Atoi(value)
		if err != nil || interval < 1 || interval > intervalLimit {
			return fmt.Errorf("want a whole number from 1 to %d, got %s", intervalLimit, quote(value))
		}
		c.interval = interval
	case controlLabels:
		if value == allLabels {
			return nil
		}
		c.labels = strings.Split(value, ",")
		for i, label := range c.labels {
			c.labels[i] = strings.TrimSpace(label)
			if c.labels[i] == "" {
				return fmt.Errorf("want labels with commas between them, or * for all, got %s", quote(value))
			}
		}
		if len(c.labels) > labelLimit {
			return fmt.Errorf("%d labels, at most %d are taken", len(c.labels), labelLimit)
		}
	case controlSnapshot, controlReload, controlRestart:
		if value != press {
			return fmt.Errorf("want %s, got %s", press, quote(value))
		}
	default:
		return errors.New("unknown control")
	}
	return nil
}

// quote shows the start of a foreign text.
func quote(text string) string {
	if len(text) > 40 {
		return strconv.QuoteToASCII(text[:40]) + " and more"
	}
	return strconv.QuoteToASCII(text)
}
