// Package zone turns tracks into what people ask about: who is in a zone and for how long, who crossed a line and in which direction, how
// many there are, and one event per object from its appearance to its end. It is logic only: nothing is drawn, encoded or sent here.
package zone

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Mode says how exactly an object must cross a line.
type Mode string

// The modes: with Strict the anchor itself must pass between the line's ends, with Loose the anchor changes sides while any part of the box
// is between them.
const (
	Strict Mode = "strict"
	Loose  Mode = "loose"
)

// Direction is the way an object crosses a line.
type Direction string

// The directions, as seen by one who stands at From and looks to To: In is from the left to the right.
const (
	Both Direction = "both"
	In   Direction = "in"
	Out  Direction = "out"
)

// Zone is an area of the image.
type Zone struct {
	Name   string  `json:"name" yaml:"name"`
	Points []Point `json:"points" yaml:"points"`
	// Labels are the objects that count, all when empty.
	Labels []string `json:"labels" yaml:"labels,omitempty"`
	Anchor Anchor   `json:"anchor" yaml:"anchor,omitempty"` // "" for Bottom
	// Share is how much of the box or mask must be inside where Anchor is one of them, 0 for any part.
	Share float64 `json:"share,omitempty" yaml:"share,omitempty"`
	// Inertia is how many detections in a row must agree that an object is inside, or outside again; 0 for 3.
	Inertia int `json:"inertia" yaml:"inertia,omitempty"`
	// MinTime is how long an object must have been inside before it has entered.
	MinTime time.Duration `json:"min_time" yaml:"min_time,omitempty"`
	// Loiter is the stay after which an object is reported to loiter, 0 for never.
	Loiter time.Duration `json:"loiter" yaml:"loiter,omitempty"`
}

// Line is a line that objects are counted at, each at most once.
type Line struct {
	Name      string    `json:"name" yaml:"name"`
	From      Point     `json:"from" yaml:"from"`
	To        Point     `json:"to" yaml:"to"`
	Labels    []string  `json:"labels" yaml:"labels,omitempty"`       // all when empty
	Anchor    Anchor    `json:"anchor" yaml:"anchor,omitempty"`       // "" for Centre
	Direction Direction `json:"direction" yaml:"direction,omitempty"` // "" for Both
	Mode      Mode      `json:"mode" yaml:"mode,omitempty"`           // "" for Strict
}

// Config is everything that a user sets for one camera.
type Config struct {
	// Width and Height are the image that the coordinates were measured on; both 0 means that coordinates are shares from 0 to 1.
	Width   int     `json:"width" yaml:"width,omitempty"`
	Height  int     `json:"height" yaml:"height,omitempty"`
	Zones   []Zone  `json:"zones" yaml:"zones,omitempty"`
	Lines   []Line  `json:"lines" yaml:"lines,omitempty"`
	Ground  *Ground `json:"ground" yaml:"ground,omitempty"`
	Filter  Filter  `json:"filter" yaml:"filter,omitempty"`
	Objects Objects `json:"objects" yaml:"objects,omitempty"`
	// DailyReset sets the counts of lines and of entries back to 0 at midnight of the clock's own time zone.
	DailyReset bool `json:"daily_reset" yaml:"daily_reset,omitempty"`
}

// Objects says when an object is reported.
type Objects struct {
	// Score is the median score that an object needs to be reported at all, by label; "" is for all labels without an own one.
	Score map[string]float32 `json:"score" yaml:"score,omitempty"`
	// Update is the longest time between two updates of an object that is there, 0 for never without a change.
	Update time.Duration `json:"update" yaml:"update,omitempty"`
	// StationaryAfter is how long an object must stay in its place to be stationary, 0 for 10 seconds.
	StationaryAfter time.Duration `json:"stationary_after" yaml:"stationary_after,omitempty"`
	// SnapshotEvery is the shortest time between two better snapshots of an object, 0 for a second.
	SnapshotEvery time.Duration `json:"snapshot_every" yaml:"snapshot_every,omitempty"`
}

// What is used where a field is zero.
const (
	DefaultInertia         = 3
	DefaultStationaryAfter = 10 * time.Second
	DefaultSnapshotEvery   = time.Second
)

// Limits keep one bad configuration from taking the frame loop's time.
const (
	maxShapes  = 64
	maxCorners = 64
)

// Names are what a configuration may call a network's classes, and the keypoints of their objects.
type Names struct{ Labels, Keypoints []string }

// Validate reports the first mistake, by the name that the user gave.
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
			return fmt.Errorf("zone %q: %w", z.Name, err)
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
			return fmt.Errorf("line %q: %w", l.Name, err)
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

// checkGround checks where the points are.
// CheckGround reports what is wrong with the calibration of the ground, where there is one. Unlike the rest it can be said before the
// network is known.
func (c *Config) ValidateGround() error {
	if c.Ground == nil || (c.Width == 0) != (c.Height == 0) {
		return nil // of half an image's size Check tells
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

// checkName refuses what cannot be a level of an MQTT topic.
func checkName(name string, taken map[string]bool) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("needs a name")
	case strings.ContainsAny(name, "/+#\x00"):
		return errors.New("the name becomes part of an MQTT topic and cannot contain / + #")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the name has characters that cannot be seen")
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
		return fmt.Errorf("share %v is of the anchors box and mask", z.Share)
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

// example is some of the keypoints that there are; COCO's ankle stands for those of networks that name none.
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
			return fmt.Errorf("label %q: the model names none; give its labels with --labels FILE", label)
		case !slices.Contains(labels, label):
			return fmt.Errorf("label %q is not one of the model's: %s", label, strings.Join(labels[:min(len(labels), 10)], ", "))
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

// checkOutline checks a polygon's corners.
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

// scaled takes configured points to an image of that size.
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

// classSet is which classes a list of labels means; nil for all.
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

// orElse is the value, or the default where it is zero.
func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
