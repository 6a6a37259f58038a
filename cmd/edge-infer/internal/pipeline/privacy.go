package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Privacy selects the parts of a camera's images that are pixelated before they leave the process.
type Privacy struct {
	Regions [][]zone.Point // polygons, as shares of the image's sides
	Labels  []string       // of objects
	// Score is the lowest score of a hidden object. It is below that of a reported one: a missed object costs more than a hidden wall.
	Score float32
}

// Hidden lists the parts of one frame that must be pixelated.
type Hidden struct {
	Regions [][]zone.Point    // polygons, as shares of the image's sides; never changed
	Boxes   []postprocess.Box // of objects in source pixels, with a margin
}

const (
	// holdHidden is how long an object is hidden after it was found last: detections flicker.
	holdHidden = time.Second
	// hiddenMargin is added to a box on every side, as a share of its longer side: boxes are often too small.
	hiddenMargin = 0.1
)

// concealer determines the hidden parts of a camera's frames. Frame goroutine only.
type concealer struct {
	score   float32
	classes []bool // by class number
	hidden  Hidden
	held    []heldBox // in hidden.Boxes' place when an object was not found again
	found   []postprocess.Box
}

// heldBox is a box that stays hidden until a time of CLOCK_MONOTONIC.
type heldBox struct {
	box   postprocess.Box
	until int64
}

// newConcealer returns nil if nothing is hidden. region is the part of the images that the network is given; objects outside of it are
// not found, so that all of it is hidden.
func newConcealer(p *Privacy, region Region, labels []string) (*concealer, error) {
	if p == nil || len(p.Regions) == 0 && len(p.Labels) == 0 {
		return nil, nil
	}
	c := &concealer{score: p.Score, hidden: Hidden{Regions: p.Regions}}
	if len(p.Labels) == 0 {
		return c, nil
	}
	c.classes = make([]bool, len(labels))
	for _, label := range p.Labels {
		class := slices.Index(labels, label)
		if class < 0 {
			return nil, fmt.Errorf("privacy.labels: the model has no class %q; edge-infer inspect lists its classes", label)
		}
		c.classes[class] = true
	}
	c.hidden.Regions = slices.Concat(p.Regions, region.outside())
	return c, nil
}

// outside returns the parts of the image around a region.
func (r Region) outside() (polygons [][]zone.Point) {
	if r.Width <= 0 || r.Height <= 0 {
		return nil
	}
	right, bottom := r.X+r.Width, r.Y+r.Height
	for _, part := range [4]Region{
		{0, 0, 1, r.Y}, {0, bottom, 1, 1 - bottom}, {0, 0, r.X, 1}, {right, 0, 1 - right, 1},
	} {
		if part.Width > 0 && part.Height > 0 {
			x, y := part.X+part.Width, part.Y+part.Height
			polygons = append(polygons, []zone.Point{{X: part.X, Y: part.Y}, {X: x, Y: part.Y}, {X: x, Y: y}, {X: part.X, Y: y}})
		}
	}
	return polygons
}

func (c *concealer) private(class int) bool {
	return class >= 0 && class < len(c.classes) && c.classes[class]
}

// conceal returns the hidden parts of a frame for its detections, reported or not, and its tracks; nil if there are none. The result is
// valid until the next call.
func (c *concealer) conceal(frame *capture.Frame, detections []postprocess.Detection, tracks []postprocess.Track) *Hidden {
	if c == nil {
		return nil
	}
	if c.classes == nil {
		return &c.hidden
	}
	c.found = c.found[:0]
	for i := range detections {
		if d := &detections[i]; d.Score >= c.score && c.private(d.Class) {
			c.found = append(c.found, withMargin(d.Box))
		}
	}
	for i := range tracks {
		t := &tracks[i]
		if !t.Matched() && c.private(t.Class) && frame.Time.Sub(t.Last) <= holdHidden {
			c.found = append(c.found, withMargin(t.Box))
		}
	}
	c.held = slices.DeleteFunc(c.held, func(h heldBox) bool {
		return frame.Captured > h.until || slices.ContainsFunc(c.found, func(box postprocess.Box) bool { return covers(box, h.box) })
	})
	c.hidden.Boxes = append(c.hidden.Boxes[:0], c.found...)
	for _, h := range c.held {
		c.hidden.Boxes = append(c.hidden.Boxes, h.box)
	}
	for _, box := range c.found {
		c.held = append(c.held, heldBox{box, frame.Captured + int64(holdHidden)})
	}
	return &c.hidden
}

// withMargin enlarges a box.
func withMargin(b postprocess.Box) postprocess.Box {
	margin := hiddenMargin * max(b.Width(), b.Height())
	return postprocess.Box{X1: b.X1 - margin, Y1: b.Y1 - margin, X2: b.X2 + margin, Y2: b.Y2 + margin}
}

// covers reports whether a box hides most of another one, so that it is the same object.
func covers(box, earlier postprocess.Box) bool {
	width := min(box.X2, earlier.X2) - max(box.X1, earlier.X1)
	height := min(box.Y2, earlier.Y2) - max(box.Y1, earlier.Y1)
	return width > 0 && height > 0 && width*height > earlier.Width()*earlier.Height()/2
}
