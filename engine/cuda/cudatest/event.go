package cudatest

import (
	"time"

	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Event marks a point in a stream.
type Event struct {
	device *cuda.Device
	event  cu.Event
}

// EventFlags configures an event.
type EventFlags uint8

// Timing lets Since measure with the event, at some cost for each Record. Blocking lets Synchronize sleep instead of spinning: less CPU,
// some microseconds later.
const (
	Timing EventFlags = 1 << iota
	Blocking
)

// NewEvent creates an event.
func NewEvent(d *cuda.Device, flags EventFlags) (*Event, error) {
	native := cu.DefaultEvent
	if flags&Timing == 0 {
		native |= cu.DisableTiming
	}
	if flags&Blocking != 0 {
		native |= cu.BlockingSyncEvent
	}
	e := &Event{device: d}
	err := d.Do(func() error {
		var err error
		e.event, err = cu.MakeEvent(native)
		return wrap("open", "event", err)
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Record enqueues the event.
func (e *Event) Record(s *Stream) error {
	return e.device.Do(func() error { return wrap("record", "event", e.event.Record(s.Native())) })
}

// Synchronize blocks until the event has passed.
func (e *Event) Synchronize() error {
	return e.device.Do(func() error { return wrap("synchronize", "event", e.event.Synchronize()) })
}

// Since returns the device time between two events. Both need Timing and must have passed. The resolution is about half a microsecond.
func (e *Event) Since(start *Event) (time.Duration, error) {
	var elapsed time.Duration
	err := e.device.Do(func() error {
		milliseconds, err := start.event.Elapsed(e.event)
		elapsed = time.Duration(milliseconds * float64(time.Millisecond))
		return wrap("time", "event", err)
	})
	return elapsed, err
}

// Close destroys the event. It is idempotent and does nothing on nil.
func (e *Event) Close() error {
	if e == nil || e.event == (cu.Event{}) {
		return nil
	}
	return e.device.Do(func() error { return wrap("close", "event", cu.DestroyEvent(&e.event)) })
}
