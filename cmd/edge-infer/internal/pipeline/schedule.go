package pipeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

// Scheduling is a camera's share of the predictor.
type Scheduling struct {
	// Rate is the most inferences a second, 0 for every frame.
	Rate float64
	// Priority is the camera's weight when the predictor cannot do all: one of 2 gets twice the frames of one of 1. 0 is 1.
	Priority int
	// Deadline is the age at which a frame is not given to the predictor any more; a result that is older counts as late. 0 is never. While
	// cameras with a deadline are late, those without get fewer inferences.
	Deadline time.Duration
	// MinRate is the lowest rate of inferences per second while nothing moves; other frames are dropped and the last result holds.
	MinRate float64
}

// fairShare is the schedule's state of a stream. Frame goroutine only.
type fairShare struct {
	served   float64 // frames inferred, divided by priority: the stream with the least is next
	turn     uint64  // number of its latest turn
	due      int64   // when the next frame of a camera with a rate is wanted, CLOCK_MONOTONIC
	captured int64   // when its latest inferred frame was captured, CLOCK_MONOTONIC
}

// schedule chooses the camera of the next frame by start-time fair queueing (Goyal, Vin and Cheng, 1996) over frames of equal cost, with
// priorities as weights. It takes a frame only when a slot is free, so nothing queues; a camera without a frame loses at most one turn.
// Frame goroutine only.
type schedule struct {
	line   []*stream // result of order, kept for the next call
	now    func() int64
	served float64 // of the stream chosen last, at that time
	turns  uint64
	relief relief
}

// order returns the streams in the order in which they may offer a frame.
func (s *schedule) order(streams []*stream) []*stream {
	s.line = append(s.line[:0], streams...)
	slices.SortFunc(s.line, func(a, b *stream) int {
		return cmp.Or(
			cmp.Compare(s.start(a), s.start(b)),
			cmp.Compare(a.urgency(), b.urgency()),
			cmp.Compare(a.share.turn, b.share.turn),
		)
	})
	return s.line
}

// start returns a stream's virtual start time: a stream that had no frames for a while has saved at most one turn.
func (s *schedule) start(c *stream) float64 { return max(c.share.served, s.served-c.cost()) }

// chose records that a stream's frame goes to the predictor.
func (s *schedule) chose(c *stream, captured int64) {
	start := s.start(c)
	c.share.served = start + c.cost()
	s.served = max(s.served, start)
	s.turns++
	c.share.turn, c.share.captured = s.turns, captured
}

// cost is the virtual time of one frame.
func (c *stream) cost() float64 { return 1 / float64(max(c.Priority, 1)) }

// urgency orders streams with equal service: the shortest deadline first.
func (c *stream) urgency() time.Duration {
	if c.Deadline <= 0 {
		return time.Hour
	}
	return c.Deadline
}

// decision is what happens to a frame.
type decision uint8

const (
	infer        decision = iota
	dropInterval          // between two that are wanted
	dropMotion            // nothing moves in it
	dropDeadline          // it is too old
)

// decide returns what happens to a frame. slowdown multiplies the time between two frames of every camera.
func (s *schedule) decide(c *stream, frame *capture.Frame, slowdown int) decision {
	settings := c.settings.Load()
	if c.Deadline == 0 {
		slowdown *= s.relief.factor()
	}
	switch {
	case !settings.Detect || frame.Seq%uint64(settings.Interval*c.stride(slowdown)) != 0:
		return dropInterval
	case frame.Still && c.MinRate > 0 && c.share.captured != 0 && float64(frame.Captured-c.share.captured) < float64(time.Second)/c.MinRate:
		return dropMotion
	case c.Deadline > 0 && !c.Lossless && s.now()-frame.Captured > int64(c.Deadline):
		s.relief.count(true)
		return dropDeadline
	case c.Rate > 0 && !c.isDue(frame.Captured, int64(float64(time.Second)*float64(slowdown)/c.Rate)):
		return dropInterval
	}
	return infer
}

// stride is by how much the interval is multiplied: a camera with a rate has that lowered instead.
func (c *stream) stride(slowdown int) int {
	if c.Rate > 0 {
		return 1
	}
	return slowdown
}

// isDue reports whether a frame is due at a rate, and when the next one is. The mean rate holds even if no frame arrives exactly on time.
func (c *stream) isDue(captured, period int64) bool {
	t := &c.share
	if t.due-captured > period { // the rate has become higher since
		t.due = captured
	}
	if captured < t.due {
		return false
	}
	if captured-t.due > period {
		t.due = captured
	}
	t.due += period
	return true
}

// relief takes load away from the predictor while frames with a deadline come too late: cameras without one are slowed down by 2, 4 and 8.
type relief struct {
	by, calm     int   // factor, and periods in a row without a late frame
	since        int64 // of the period
	frames, late int   // with a deadline, in the period
}

const (
	reliefPeriod = time.Second
	mostRelief   = 8
	reliefCalm   = 5 // periods
)

func (r *relief) factor() int { return max(r.by, 1) }

func (r *relief) count(late bool) {
	r.frames++
	if late {
		r.late++
	}
}

// step evaluates the counters once per period: if more than one frame in a hundred is late, the others' rate is halved. It reports whether
// the factor changed.
func (r *relief) step(now int64) bool {
	if now-r.since < int64(reliefPeriod) {
		return false
	}
	before := r.factor()
	switch {
	case 100*r.late > r.frames:
		r.by, r.calm = min(mostRelief, 2*before), 0
	case r.late > 0:
		r.calm = 0
	default:
		if r.calm++; r.calm >= reliefCalm {
			r.by, r.calm = max(1, before/2), 0
		}
	}
	r.since, r.frames, r.late = now, 0, 0
	return r.factor() != before
}

// drop releases a frame that is not inferred, and counts it with its reason.
func (c *stream) drop(frame *capture.Frame, why decision) {
	switch {
	case c.Tracker == nil:
	case why == dropMotion:
		c.Tracker.hold(frame.Time)
	default:
		c.Tracker.skip(frame.Time)
	}
	frame.Release()
	c.meter.drop(why)
}
