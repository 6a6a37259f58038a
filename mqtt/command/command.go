// Package command parses the messages of remote control to set topics.
package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The controls, as they are called in topics.
const (
	Detect    = "detect"
	Threshold = "threshold"
	Interval  = "interval"
	Labels    = "labels"
	Snapshot  = "snapshot"
	Reload    = "reload"
	Restart   = "restart"
)

// AllLabels selects every label.
const AllLabels = "*"

// withdraw is the payload that withdraws a remotely set value, as an empty payload does.
const withdraw = "reset"

// Bounds of a command.
const (
	MaxBytes    = 4096
	MaxLabels   = 100
	MaxInterval = 1000 // frames
)

// press is what Home Assistant's buttons send.
const press = "PRESS"

// Command is a message to a set topic that was understood.
type Command struct {
	Camera, Control string // Camera is empty for the device's own
	On              bool
	Threshold       float64
	Interval        int
	Labels          []string // nil: all
	Withdraw        bool     // the configured value shall be in force again; the other fields are zero
}

// ErrNone is for messages that are not commands, such as empty ones to controls without a value.
var ErrNone = errors.New("no command")

// Parse reads a message below base; name turns a topic level into a camera's name.
func Parse(base, topic string, payload []byte, name func(level string) (string, bool)) (Command, error) {
	rest, found := strings.CutPrefix(topic, base)
	if !found {
		return Command{}, ErrNone
	}
	path, found := strings.CutSuffix(rest, "/set")
	if !found {
		return Command{}, ErrNone
	}
	var c Command
	known := true
	if camera, control, found := strings.Cut(path, "/"); found {
		c.Camera, known = name(camera)
		c.Control = control
	} else {
		c.Control = path
	}
	switch empty := len(payload) == 0; {
	case empty && (!known || !c.hasValue()):
		return Command{}, ErrNone
	case !known:
		return Command{}, errors.New("unknown camera")
	}
	return c, c.readPayload(string(payload))
}

// ParseValue parses the value of one of a camera's controls, in the form of a payload; empty withdraws it.
func ParseValue(camera, control, payload string) (Command, error) {
	c := Command{Camera: camera, Control: control}
	if !c.hasValue() {
		return Command{}, fmt.Errorf("no setting %s (there are detect, threshold, interval and labels)", Quote(control))
	}
	return c, c.readPayload(payload)
}

// readPayload parses a payload of any content.
func (c *Command) readPayload(payload string) error {
	if len(payload) > MaxBytes {
		return fmt.Errorf("%d bytes, at most %d are read", len(payload), MaxBytes)
	}
	if !utf8.ValidString(payload) {
		return errors.New("not UTF-8 text")
	}
	return c.read(strings.TrimSpace(payload))
}

// read fills in the value that the control takes.
func (c *Command) read(value string) error {
	if c.hasValue() && (value == "" || strings.EqualFold(value, withdraw)) {
		c.Withdraw = true
		return nil
	}
	ofDevice := c.Control == Reload || c.Control == Restart
	if ofDevice != (c.Camera == "") {
		return errors.New("unknown control")
	}
	switch c.Control {
	case Detect:
		switch strings.ToUpper(value) {
		case "ON":
			c.On = true
		case "OFF":
		default:
			return fmt.Errorf("want ON or OFF, got %s", Quote(value))
		}
	case Threshold:
		threshold, err := strconv.ParseFloat(value, 64)
		if err != nil || strings.Trim(value, "0123456789.eE+-") != "" || !(threshold >= 0 && threshold <= 1) {
			return fmt.Errorf("want a number from 0 to 1, got %s", Quote(value))
		}
		c.Threshold = threshold
	case Interval:
		interval, err := strconv.Atoi(value)
		if err != nil || interval < 1 || interval > MaxInterval {
			return fmt.Errorf("want a whole number from 1 to %d, got %s", MaxInterval, Quote(value))
		}
		c.Interval = interval
	case Labels:
		if value == AllLabels {
			return nil
		}
		c.Labels = strings.Split(value, ",")
		for i, label := range c.Labels {
			c.Labels[i] = strings.TrimSpace(label)
			if c.Labels[i] == "" {
				return fmt.Errorf("want labels with commas between them, or * for all, got %s", Quote(value))
			}
		}
		if len(c.Labels) > MaxLabels {
			return fmt.Errorf("%d labels, at most %d are taken", len(c.Labels), MaxLabels)
		}
	case Snapshot, Reload, Restart:
		if value != press {
			return fmt.Errorf("want %s, got %s", press, Quote(value))
		}
	default:
		return errors.New("unknown control")
	}
	return nil
}

// hasValue reports whether the control is a camera's and has a value.
func (c *Command) hasValue() bool {
	return c.Camera != "" && slices.Contains([]string{Detect, Threshold, Interval, Labels}, c.Control)
}

// Quote shows the start of a foreign text.
func Quote(text string) string {
	if len(text) > 40 {
		return strconv.QuoteToASCII(text[:40]) + " and more"
	}
	return strconv.QuoteToASCII(text)
}
