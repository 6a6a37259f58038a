package zone

import (
	"math"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// countingLine is a line in image pixels.
type countingLine struct {
	from      Point
	along     Point // unit vector
	length    float64
	anchor    Anchor
	classes   []bool
	direction Direction
	loose     bool
}

// side is an object's state at a line.
type side struct {
	sign    int8 // the side it belongs to: 1 right, -1 left, 0 unknown
	last    int8 // the side of the latest anchor point
	counted bool
	pending Direction // crossed before the object was announced
	point   Point     // latest anchor point
	crossed bool      // the latest change of sides was between the ends
}

// updateLine updates an object's state at a line. The object belongs to a side until its anchor is clearly on the other one, so that noise
// at the line is not counted; the position where the anchor changed sides decides whether it passed between the ends.
func (a *Analytics) updateLine(o *objectState, line int, f *postprocess.Detection, seq uint64, at time.Time) {
	g, s := &a.lines[line], &o.sides[line]
	anchor := o.anchorPoint(g.anchor, f)
	distance := g.along.cross(anchor.minus(g.from)) // positive on the right
	sign := int8(0)
	switch {
	case distance > 0:
		sign = 1
	case distance < 0:
		sign = -1
	}
	if s.sign == 0 {
		s.sign, s.last, s.point = sign, sign, anchor
		return
	}
	if sign != 0 && sign != s.last {
		s.crossed = g.between(s.point, anchor, o.Box)
		s.last = sign
	}
	if sign != 0 {
		s.point = anchor
	}
	clearly := max(2, 0.05*float64(min(o.Width(), o.Height())))
	if sign != 0 && sign != s.sign && math.Abs(distance) >= clearly {
		s.sign = sign
		direction := Out
		if sign > 0 {
			direction = In
		}
		if s.crossed && !s.counted && has(g.classes, o.Class) && (g.direction == Both || g.direction == direction) {
			s.counted, s.pending = true, direction
		}
	}
	if s.pending != "" && o.announced {
		direction := s.pending
		s.pending, o.changed = "", true
		a.counts.cross(line, o.Class, direction)
		a.emit(Event{Kind: Cross, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: line, Direction: direction})
	}
}

// between reports whether the path from p to q meets the line between its ends or, for a loose line, whether the box does.
func (g *countingLine) between(p, q Point, box postprocess.Box) bool {
	d0, d1 := g.along.cross(p.minus(g.from)), g.along.cross(q.minus(g.from))
	if d0 == d1 {
		return false
	}
	t := d0 / (d0 - d1)
	meet := Point{p.X + t*(q.X-p.X), p.Y + t*(q.Y-p.Y)}
	at := g.along.dot(meet.minus(g.from))
	reach := 0.0
	if g.loose {
		reach = (math.Abs(g.along.X)*float64(box.Width()) + math.Abs(g.along.Y)*float64(box.Height())) / 2
	}
	return at >= -reach && at <= g.length+reach
}
