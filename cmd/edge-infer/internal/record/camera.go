package record

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Camera is a camera that is recorded.
type Camera struct {
	Name string
	// Continuous makes all of its video recorded, in files of a minute, beside the clips of its events. WithoutClips leaves those out.
	Continuous, WithoutClips bool
	// Classes are the labels and Zones the names of zones whose objects are recorded; empty for all.
	Classes, Zones []string
	// Source hands out the camera's access units; *capture.Camera is one. Without units the frames of the loop are recorded as JPEGs.
	Source interface{ Ring() *capture.Ring }
}

const (
	// maxLength is how long an object is recorded at most, and after which a longer recording goes on in another file. It bounds what a flag
	// in the wind costs.
	maxLength = 5 * time.Minute
	// continuousLength is the length of the files of continuous recording.
	continuousLength = time.Minute
	// maxEvents bounds the events that wait for a slow disk.
	maxEvents = 10000
)

// demand is what a camera's events want to be recorded. The frame goroutine adds to it, the camera's recording takes it.
type demand struct {
	settings atomic.Pointer[Camera]
	after    time.Duration // mu is held
	wake     chan struct{} // holds a token after an event

	mu     sync.Mutex
	moving map[uint64]object // objects that are recorded until they stop or leave, by track
	begin  int64             // capture time of the first event that was not taken, CLOCK_MONOTONIC; 0 for none
	until  int64             // to when the other events are recorded
	ending []ending          // objects that have stopped or left, and are recorded for a while
	events []string          // not taken
	missed uint64            // events beyond maxEvents
}

// object is an object that moves.
type object struct {
	id    string
	since int64 // capture time of its first event
	over  bool  // it has been recorded for maxLength
}

// ending is an object that is recorded until a time of CLOCK_MONOTONIC.
type ending struct {
	id    string
	until int64
}

// setAfter changes how long is recorded after an event.
func (d *demand) setAfter(after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.after = after
}

// add takes over the events of a frame.
func (d *demand) add(in *pipeline.Result, at int64) {
	settings := d.settings.Load()
	for i := range in.Events.Events {
		e := &in.Events.Events[i]
		d.event(e, at, e.Kind != zone.End && settings.wants(e, in))
	}
}

// wants reports whether the object of an event is one of those that are recorded.
func (c *Camera) wants(e *zone.Event, in *pipeline.Result) bool {
	if c.WithoutClips || len(c.Classes) > 0 && !slices.Contains(c.Classes, postprocess.Label(in.Labels, e.Object.Class)) {
		return false
	}
	if len(c.Zones) == 0 {
		return true
	}
	return slices.ContainsFunc(e.Object.Zones, func(i int) bool {
		return slices.Contains(c.Zones, in.Tracker.Config.Zones[i].Name)
	})
}

// event adds an event. An object is recorded while it moves, and for the time after that; events of other objects for that time alone.
func (d *demand) event(e *zone.Event, at int64, wanted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, moving := d.moving[e.Object.Track]
	moves := wanted && !e.Object.Stationary
	if moving && !moves {
		delete(d.moving, e.Object.Track)
	}
	begins := !moving && wanted && (moves || e.Kind != zone.Update)
	if begins || moving && !o.over {
		d.until = max(d.until, at+int64(d.after))
		d.ending = slices.DeleteFunc(d.ending, func(e ending) bool { return e.until < at })
		if !moves {
			d.ending = append(d.ending, ending{e.Object.ID(), at + int64(d.after)})
		}
	}
	if !begins {
		return
	}
	o = object{id: e.Object.ID(), since: at}
	if moves {
		d.moving[e.Object.Track] = o
	}
	if len(d.events) >= maxEvents {
		d.missed++
		return
	}
	if d.begin == 0 {
		d.begin = at
	}
	if !slices.Contains(d.events, o.id) {
		d.events = append(d.events, o.id)
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// take returns when the first event of those that were not taken happened, 0 if there is none, and the objects' ids.
func (d *demand) take() (begin int64, events []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	begin, events = d.begin, d.events
	d.begin, d.events = 0, nil
	return begin, events
}

// end returns to when is recorded as of a time, both in CLOCK_MONOTONIC.
func (d *demand) end(now int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	moving := false
	for track, o := range d.moving {
		if !o.over && now-o.since > int64(maxLength) {
			o.over = true
			d.moving[track] = o
			d.until = max(d.until, o.since+int64(maxLength+d.after))
		}
		moving = moving || !o.over
	}
	if moving {
		return math.MaxInt64
	}
	return d.until
}

// active returns the ids of the objects that are recorded at a time of CLOCK_MONOTONIC.
func (d *demand) active(at int64) (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.moving {
		if !o.over {
			ids = append(ids, o.id)
		}
	}
	for _, e := range d.ending {
		if e.until >= at {
			ids = append(ids, e.id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// camera records one camera, in two goroutines: one for the clips of its events, one for continuous recording.
type camera struct {
	demand
	name     string
	recorder *Recorder
	images   images // of a camera without access units
	cancel   context.CancelFunc
	done     chan struct{}
	changed  chan struct{} // holds a token after a change of the settings

	lastEnd int64 // of the last clip, CLOCK_MONOTONIC; goroutine of clips only

	clips, continuous condition
	skipped           atomic.Uint64
}

// wantsAll reports whether all of the camera's video is recorded.
func (c *camera) wantsAll() bool { return c.settings.Load().Continuous }

// ring returns the camera's access units, nil if there are none yet.
func (c *camera) ring() *capture.Ring {
	if ring := c.settings.Load().Source.Ring(); ring != nil {
		return ring
	}
	return c.images.ring.Load()
}

// run records until ctx ends.
func (c *camera) run(ctx context.Context) {
	defer close(c.done)
	if !c.recorder.ready(ctx) {
		return
	}
	var all sync.WaitGroup
	all.Go(func() { c.runClips(ctx) })
	all.Go(func() { c.runContinuous(ctx) })
	all.Wait()
}

// runClips records events until ctx ends.
func (c *camera) runClips(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		c.record(ctx)
	}
}

// runContinuous records all of the video, while the settings want that, until ctx ends.
func (c *camera) runContinuous(ctx context.Context) {
	for ctx.Err() == nil {
		if c.wantsAll() {
			r := &recording{camera: c, condition: &c.continuous, continuous: true, events: []string{}, requested: c.recorder.now()}
			r.run(ctx)
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.changed:
		}
	}
}
