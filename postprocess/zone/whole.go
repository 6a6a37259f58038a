package zone

import (
	"math"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// wholeSize is the size that an object's box would have if nothing hid a part of it. Distance changes both sides of a box alike, an
// obstacle only one: a post cuts the width, a counter the height.
type wholeSize struct{ x, y wholeSide }

// wholeSide is the length of one side in pixels, and the ends of the recent boxes together.
type wholeSide struct{ length, low, high float64 }

// A side that stays shorter for some wholeRelearn is the object's own: it has turned or sat down. Not so while boxes of the last
// wholeRecent together are longer: they show one end of the object and then the other. Below partialShare a side varies with posture.
const (
	wholeRelearn = 3 * time.Second
	wholeRecent  = time.Second
	partialShare = 0.25
)

// update follows a box, elapsed after the one before.
func (w *wholeSize) update(b postprocess.Box, elapsed time.Duration) {
	width, height := float64(b.Width()), float64(b.Height())
	if w.x.length <= 0 || w.y.length <= 0 {
		w.x = wholeSide{width, float64(b.X1), float64(b.X2)}
		w.y = wholeSide{height, float64(b.Y1), float64(b.Y2)}
		return
	}
	smaller := min(max(width/w.x.length, height/w.y.length), 1) // by distance
	w.x.update(float64(b.X1), float64(b.X2), smaller, elapsed)
	w.y.update(float64(b.Y1), float64(b.Y2), smaller, elapsed)
}

func (s *wholeSide) update(low, high, smaller float64, elapsed time.Duration) {
	forget := 1 - math.Exp(-elapsed.Seconds()/wholeRecent.Seconds())
	s.low = min(low, s.low+forget*(low-s.low))
	s.high = max(high, s.high+forget*(high-s.high))
	s.length *= smaller
	recent := min(s.high-s.low, s.length)
	relearn := 1 - math.Exp(-elapsed.Seconds()/wholeRelearn.Seconds())
	s.length = max(s.length+relearn*(recent-s.length), high-low)
}

// missing returns what a box lacks of the whole width and height; 0 for little.
func (w *wholeSize) missing(b postprocess.Box) (x, y float64) {
	return w.x.missing(float64(b.Width())), w.y.missing(float64(b.Height()))
}

func (s *wholeSide) missing(length float64) float64 {
	if s.length-length < partialShare*s.length {
		return 0
	}
	return s.length - length
}
