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
	sign    int8      // the side it belongs to: 1 right, -1 left, 0 unknown
	last    int8      // the side of the latest anchor point
	now     Direction // crossed with this update
	pending Direction // crossed before the object was announced
	point   Point     // latest anchor point
	step    Point     // from the one before to it
	due     Point     // where it would be now without a change of speed
	crossed bool      // the latest change of sides was between the ends
}

// An object changes sides when its anchor is on the other one by this share of the shorter side of its box, and by so many pixels at least.
// In between it stays where it was: the box of an object that stands on the line moves by a few percent from frame to frame.
const (
	hysteresisShare  = 0.15
	hysteresisPixels = 3
)

// updateLine updates an object's state at a line. Every crossing counts: in and out again are two. The object belongs to a side until its
// anchor is clearly on the other one; the position where the anchor changed sides decides whether it passed between the ends.
func (a *Analytics) updateLine(o *objectState, line int, f *postprocess.Detection) {
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
		s.due = Point{s.point.X + s.step.X, s.point.Y + s.step.Y}
		s.step = anchor.minus(s.point)
		s.point = anchor
	}
	clearly := max(hysteresisPixels, hysteresisShare*float64(min(o.Width(), o.Height()))) + a.hidden(o, g)
	if sign != 0 && sign != s.sign && math.Abs(distance) >= clearly {
		s.sign = sign
		direction := Out
		if sign > 0 {
			direction = In
		}
		if s.crossed && has(g.classes, o.Class) && (g.direction == Both || g.direction == direction) {
			s.now = direction
		}
	}
}

// hidden returns how far across the line the anchor of the whole object may be from that of its box, in pixels: the box of an object behind
// a post shows its left side, then its right side, and must not cross the line with each. A box that the image's edge cuts is where the
// object leaves.
func (a *Analytics) hidden(o *objectState, g *countingLine) float64 {
	x, y := o.whole.missing(o.Box)
	const edge = 2
	if o.X1 < edge || o.X2 > float32(a.Width)-edge {
		x = 0
	}
	if o.Y1 < edge || o.Y2 > float32(a.Height)-edge {
		y = 0
	}
	switch g.anchor {
	case Centre:
		y /= 2
	case Bottom, Top, Feet:
	default:
		return 0 // a keypoint is where it is
	}
	return math.Abs(g.along.Y)*x/2 + math.Abs(g.along.X)*y
}

// reportCrossings counts the crossings of a line since the last call, when all objects of a frame have been updated.
func (a *Analytics) reportCrossings(line int, seq uint64, at time.Time) {
	for i, o := range a.objects {
		s := &o.sides[line]
		if s.now != "" && !o.swapped(line, a.objects[i+1:]) {
			s.add()
		}
		if s.pending != "" && o.announced {
			direction := s.pending
			s.pending, o.changed = "", true
			a.counts.cross(line, o.Class, direction)
			a.emit(Event{Kind: Cross, Seq: seq, Time: at, Object: &o.Object, Zone: -1, Line: line, Direction: direction})
		}
	}
}

// swapped reports whether a crossing is an exchange of two tracks' identities: another track crosses the other way with the same update,
// and each is where the other was due, and not where it was due itself. Neither crossing counts then.
func (o *objectState) swapped(line int, others []*objectState) bool {
	s := &o.sides[line]
	isAt := func(a, b *side) bool {
		distance := a.point.distance(b.due)
		return distance < a.point.distance(a.due) && distance < float64(min(o.Width(), o.Height()))/2
	}
	for _, another := range others {
		other := &another.sides[line]
		if other.now != "" && other.now != s.now && isAt(s, other) && isAt(other, s) {
			s.now = ""
			other.now = ""
			return true
		}
	}
	return false
}

// add notes the crossing of this update. It cancels an opposite one that has not been announced.
func (s *side) add() {
	now := s.now
	s.now = ""
	if s.pending != "" && s.pending != now {
		now = ""
	}
	s.pending = now
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
