package zone

import (
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// area is a zone in image pixels.
type area struct {
	outline  polygon
	anchor   Anchor
	minShare float64
	bounds   postprocess.Box // of outline
	classes  []bool
	inertia  int
	minTime  time.Duration
	loiter   time.Duration
}

// stay is an object's state in a zone.
type stay struct {
	inside      bool // after Inertia and MinTime
	loitered    bool
	disagreeing int       // consecutive detections that differ from inside
	since       time.Time // time of the first of them, then of the entry
}

// updateZone updates an object's state in a zone.
func (a *Analytics) updateZone(o *objectState, zone int, f *postprocess.Detection, seq uint64, at time.Time) {
	z, p := &a.zones[zone], &o.stays[zone]
	inside := has(z.classes, o.Class) && a.inside(o, z, f)
	if inside == p.inside {
		p.disagreeing = 0
	} else {
		p.disagreeing++
		if p.disagreeing == 1 && !p.inside {
			p.since = at
		}
	}
	switch {
	case !p.inside && p.disagreeing >= z.inertia && at.Sub(p.since) >= z.minTime && o.announced:
		p.inside, p.disagreeing, p.loitered = true, 0, false
		o.Zones = append(o.Zones, zone)
		if !slices.Contains(o.Entered, zone) {
			o.Entered = append(o.Entered, zone)
		}
		o.changed = true
		a.counts.enter(zone, o.Class)
		a.emit(Event{Kind: Enter, Seq: seq, Time: at, Object: &o.Object, Zone: zone, Line: -1})
	case p.inside && p.disagreeing >= z.inertia:
		a.leave(o, zone, seq, at)
	}
	if p.inside && !p.loitered && z.loiter > 0 && at.Sub(p.since) >= z.loiter {
		p.loitered, o.changed = true, true
		a.emit(Event{Kind: Loiter, Seq: seq, Time: at, Object: &o.Object, Zone: zone, Line: -1, Dwell: at.Sub(p.since)})
	}
}

func (a *Analytics) leave(o *objectState, zone int, seq uint64, at time.Time) {
	p := &o.stays[zone]
	dwell := o.LastSeen.Sub(p.since)
	p.inside, p.disagreeing = false, 0
	number := slices.Index(o.Zones, zone)
	o.Zones = slices.Delete(o.Zones, number, number+1)
	o.changed = true
	a.counts.leave(zone, dwell)
	a.emit(Event{Kind: Leave, Seq: seq, Time: at, Object: &o.Object, Zone: zone, Line: -1, Dwell: dwell})
}
