// Package zone turns tracks into events and counts: who is in a zone and for how long, which objects crossed a line in which direction, how
// many there are, and one sequence of events per object from its appearance to its end. It does not draw, encode or send anything.
package zone

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Mode selects how an object must cross a line.
type Mode string

// In mode Strict the anchor must pass between the line's ends. In mode Loose the anchor changes sides while any part of the box is between
// them.
const (
	Strict Mode = "strict"
	Loose  Mode = "loose"
)

// Direction is the direction in which an object crosses a line.
type Direction string

// The directions, seen from From towards To: In is from left to right.
const (
	Both Direction = "both"
	In   Direction = "in"
	Out  Direction = "out"
)

// Zone is an area of the image.
type Zone struct {
	Name   string  `json:"name" yaml:"name"`
	Points []Point `json:"points" yaml:"points"`
	// Labels lists the classes that count, all if empty.
	Labels []string `json:"labels" yaml:"labels,omitempty"`
	Anchor Anchor   `json:"anchor" yaml:"anchor,omitempty"` // "" for Bottom
	// Share is the minimum share of the box or mask inside the zone for these anchors, 0 for any part.
	Share float64 `json:"share,omitempty" yaml:"share,omitempty"`
	// Inertia is the number of consecutive detections that must agree that an object is inside, or outside again; 0 for 3.
	Inertia int `json:"inertia" yaml:"inertia,omitempty"`
	// MinTime is how long an object must be inside before it has entered.
	MinTime time.Duration `json:"min_time" yaml:"min_time,omitempty"`
	// Loiter is the length of stay that causes a Loiter event, 0 for never.
	Loiter time.Duration `json:"loiter" yaml:"loiter,omitempty"`
}

// Line counts objects that cross it, each at most once.
type Line struct {
	Name      string    `json:"name" yaml:"name"`
	From      Point     `json:"from" yaml:"from"`
	To        Point     `json:"to" yaml:"to"`
	Labels    []string  `json:"labels" yaml:"labels,omitempty"`       // all if empty
	Anchor    Anchor    `json:"anchor" yaml:"anchor,omitempty"`       // "" for Centre
	Direction Direction `json:"direction" yaml:"direction,omitempty"` // "" for Both
	Mode      Mode      `json:"mode" yaml:"mode,omitempty"`           // "" for Strict
}

// Config is the user's configuration of one camera.
type Config struct {
	// Width and Height are the size of the image that the coordinates refer to; both 0 for coordinates from 0 to 1.
	Width   int     `json:"width" yaml:"width,omitempty"`
	Height  int     `json:"height" yaml:"height,omitempty"`
	Zones   []Zone  `json:"zones" yaml:"zones,omitempty"`
	Lines   []Line  `json:"lines" yaml:"lines,omitempty"`
	Ground  *Ground `json:"ground" yaml:"ground,omitempty"`
	Filter  Filter  `json:"filter" yaml:"filter,omitempty"`
	Objects Objects `json:"objects" yaml:"objects,omitempty"`
	// DailyReset resets line and entry counts at midnight, in the time zone of the frames' times.
	DailyReset bool `json:"daily_reset" yaml:"daily_reset,omitempty"`
}

// Objects configures when objects are reported.
type Objects struct {
	// Score is the minimum median score of a reported object by label; "" applies to all other labels.
	Score map[string]float32 `json:"score" yaml:"score,omitempty"`
	// Update is the longest interval between two updates of a present object, 0 for updates on changes only.
	Update time.Duration `json:"update" yaml:"update,omitempty"`
	// StationaryAfter is the time without movement after which an object is stationary, 0 for 10 seconds.
	StationaryAfter time.Duration `json:"stationary_after" yaml:"stationary_after,omitempty"`
	// SnapshotEvery is the shortest interval between two snapshots of an object, 0 for a second.
	SnapshotEvery time.Duration `json:"snapshot_every" yaml:"snapshot_every,omitempty"`
}

// Defaults of fields that are zero.
const (
	DefaultInertia         = 3
	DefaultStationaryAfter = 10 * time.Second
	DefaultSnapshotEvery   = time.Second
)

// Limits that protect the frame loop from excessive configurations.
const (
	maxShapes    = 64
	maxCorners   = 64
	maxNameBytes = 128 // it becomes part of topics and entity names
)

// Names are the class and keypoint names of a network that a configuration may use.
type Names struct{ Labels, Keypoints []string }

// Validate returns the first error, with the name of the zone or line.
func (c *Config) Validate(names Names) error {
	if (c.Width == 0) != (c.Height == 0) || c.Width < 0 || c.Height < 0 || c.Width > 1<<15 || c.Height > 1<<15 {
		return fmt.Errorf("zones: image of %dx%d; give both sides in pixels, or none for coordinates from 0 to 1", c.Width, c.Height)
	}
	if len(c.Zones) > maxShapes || len(c.Lines) > maxShapes || len(c.Filter.Masks) > maxShapes {
		return fmt.Errorf("zones: %d zones, %d lines and %d masks, at most %d of each", len(c.Zones), len(c.Lines), len(c.Filter.Masks),
			maxShapes)
	}
	taken := map[string]bool{}
	for i := range c.Zones {
		z := &c.Zones[i]
		err := checkName(z.Name, taken)
		if err == nil {
			err = c.checkZone(z, names)
		}
		if err != nil {
			return fmt.Errorf("zone %.80q: %w", z.Name, err)
		}
	}
	clear(taken)
	for i := range c.Lines {
		l := &c.Lines[i]
		err := checkName(l.Name, taken)
		if err == nil {
			err = c.checkLine(l, names)
		}
		if err != nil {
			return fmt.Errorf("line %.80q: %w", l.Name, err)
		}
	}
	if err := c.ValidateGround(); err != nil {
		return fmt.Errorf("ground: %w", err)
	}
	for i, mask := range c.Filter.Masks {
		if err := c.checkOutline(mask); err != nil {
			return fmt.Errorf("mask %d: %w", i+1, err)
		}
	}
	if err := c.Filter.check(names.Labels); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	if err := c.Objects.check(names.Labels); err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	return nil
}

// ValidateGround checks the ground calibration, if there is one. Unlike Validate it does not need the network's names.
func (c *Config) ValidateGround() error {
	if c.Ground == nil || (c.Width == 0) != (c.Height == 0) {
		return nil // Validate reports an incomplete image size
	}
	if err := c.Ground.check(); err != nil {
		return err
	}
	for i, p := range c.Ground.Points {
		if !c.onImage(p) {
			return fmt.Errorf("point %d (%g, %g) is outside the image", i+1, p.X, p.Y)
		}
	}
	if len(c.Ground.Points) != 2 {
		if err := c.checkOutline(c.Ground.Points); err != nil {
			return fmt.Errorf("%w; give the corners in order, around the rectangle", err)
		}
	}
	_, err := c.Ground.plane(c.scaled(c.Ground.Points, 1, 1))
	return err
}

// checkName refuses names that cannot be a level of an MQTT topic.
func checkName(name string, taken map[string]bool) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("needs a name")
	case len(name) > maxNameBytes:
		return fmt.Errorf("the name has %d bytes, at most %d", len(name), maxNameBytes)
	case strings.ContainsAny(name, "/+#\x00"):
		return errors.New("the name becomes part of an MQTT topic and cannot contain / + #")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the name contains unprintable characters")
	case taken[name]:
		return errors.New("the name is used twice")
	}
	taken[name] = true
	return nil
}

func (c *Config) checkZone(z *Zone, names Names) error {
	if err := c.checkOutline(z.Points); err != nil {
		return err
	}
	if err := checkLabels(z.Labels, names.Labels); err != nil {
		return err
	}
	switch {
	case !z.Anchor.isArea() && !z.Anchor.isPoint(names.Keypoints):
		return fmt.Errorf("anchor %q is not bottom, centre, top, feet, box, mask or a keypoint like %s", z.Anchor, example(names.Keypoints))
	case !(z.Share >= 0 && z.Share <= 1):
		return fmt.Errorf("share %v is not between 0 and 1", z.Share)
	case z.Share > 0 && !z.Anchor.isArea():
		return fmt.Errorf("share %v needs the anchor box or mask", z.Share)
	case z.Inertia < 0 || z.Inertia > 1000:
		return fmt.Errorf("inertia %d is not between 0 and 1000", z.Inertia)
	case z.MinTime < 0:
		return fmt.Errorf("min time %v is negative", z.MinTime)
	case z.Loiter < 0:
		return fmt.Errorf("loiter time %v is negative", z.Loiter)
	}
	return nil
}

func (c *Config) checkLine(l *Line, names Names) error {
	for i, p := range []Point{l.From, l.To} {
		if !c.onImage(p) {
			return fmt.Errorf("%s point (%g, %g) is outside the image", [...]string{"from", "to"}[i], p.X, p.Y)
		}
	}
	if err := checkLabels(l.Labels, names.Labels); err != nil {
		return err
	}
	switch {
	case l.From == l.To:
		return errors.New("both ends are the same point")
	case !l.Anchor.isPoint(names.Keypoints):
		return fmt.Errorf("anchor %q is not bottom, centre, top, feet or a keypoint like %s", l.Anchor, example(names.Keypoints))
	case !slices.Contains([]Direction{"", Both, In, Out}, l.Direction):
		return fmt.Errorf("direction %q is not both, in or out", l.Direction)
	case !slices.Contains([]Mode{"", Strict, Loose}, l.Mode):
		return fmt.Errorf("mode %q is not strict or loose", l.Mode)
	}
	return nil
}

// example returns some of the network's keypoint names, or one of COCO's.
func example(keypoints []string) string {
	if len(keypoints) == 0 || slices.Contains(keypoints, "left_ankle") {
		return "left_ankle"
	}
	return strings.Join(keypoints[:min(len(keypoints), 3)], ", ")
}

func checkLabels(wanted, labels []string) error {
	for _, label := range wanted {
		switch {
		case len(labels) == 0:
			return fmt.Errorf("label %q: the model has no class names; provide them with --labels FILE", label)
		case !slices.Contains(labels, label):
			return postprocess.UnknownLabelError(label, labels)
		}
	}
	return nil
}

func (c *Config) onImage(p Point) bool {
	right, bottom := 1.0, 1.0
	if c.Width > 0 {
		right, bottom = float64(c.Width), float64(c.Height)
	}
	return p.X >= 0 && p.X <= right && p.Y >= 0 && p.Y <= bottom
}

// ValidatePolygon checks the corners of a polygon in shares of the image's sides.
func ValidatePolygon(points []Point) error { return new(Config).checkOutline(points) }

// checkOutline checks the corners of a polygon.
func (c *Config) checkOutline(points []Point) error {
	if len(points) < 3 || len(points) > maxCorners {
		return fmt.Errorf("needs 3 to %d points, has %d", maxCorners, len(points))
	}
	for i, p := range points {
		if !c.onImage(p) {
			return fmt.Errorf("point %d (%g, %g) is outside the image", i+1, p.X, p.Y)
		}
	}
	outline := polygon(points)
	if one, two, crossing := outline.selfIntersection(); crossing {
		return fmt.Errorf("edges %d and %d cross", one, two)
	}
	if outline.area() == 0 {
		return errors.New("the points enclose no area")
	}
	return nil
}

func (o *Objects) check(labels []string) error {
	for label, score := range o.Score {
		if label != "" && !slices.Contains(labels, label) {
			return fmt.Errorf("score for label %q, which the model does not have", label)
		}
		if !(score >= 0 && score <= 1) {
			return fmt.Errorf("score %v of label %q is not between 0 and 1", score, label)
		}
	}
	for name, d := range map[string]time.Duration{
		"update": o.Update, "stationary after": o.StationaryAfter, "snapshot every": o.SnapshotEvery,
	} {
		if d < 0 {
			return fmt.Errorf("%s %v is negative", name, d)
		}
	}
	return nil
}

// Pixels converts configured points to pixels of an image of that size.
func (c *Config) Pixels(points []Point, width, height int) []Point {
	return c.scaled(points, float64(width), float64(height))
}

// scaled converts configured points to an image of the given size.
func (c *Config) scaled(points []Point, width, height float64) polygon {
	if c.Width > 0 {
		width /= float64(c.Width)
		height /= float64(c.Height)
	}
	out := make(polygon, len(points))
	for i, p := range points {
		out[i] = Point{p.X * width, p.Y * height}
	}
	return out
}

// classSet converts labels to a set by class number; nil for all.
func classSet(wanted, labels []string) []bool {
	if len(wanted) == 0 {
		return nil
	}
	set := make([]bool, len(labels))
	for class, label := range labels {
		set[class] = slices.Contains(wanted, label)
	}
	return set
}

func has(set []bool, class int) bool {
	return set == nil || class >= 0 && class < len(set) && set[class]
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
