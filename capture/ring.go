package capture

import (
	"context"
	"sync"
	"time"
)

// Limits of a Ring: DefaultRingBytes holds 16 seconds of a stream of 4 Mbit/s, KeptRingBytes is the limit with Options.KeepUnits, which
// usually removes units earlier.
const (
	DefaultRingBytes = 8 << 20
	KeptRingBytes    = 48 << 20
	// unitOverhead is what a unit takes besides its data: a hostile camera may send very small ones.
	unitOverhead = 128
)

// Ring keeps the newest access units of a stream for several readers. The zero value is ready; all methods are safe for concurrent use.
type Ring struct {
	// Bytes bounds the units' memory, DefaultRingBytes when 0. The newest unit is kept even if it is larger.
	Bytes int
	// Keep is how far back readers go: units that no reader of ReaderAt needs who begins that long before the newest unit are removed. 0
	// keeps what Bytes admits.
	Keep time.Duration

	mu      sync.Mutex
	units   []Unit // a queue: first is the oldest
	first   int
	number  uint64 // of the oldest unit since the stream began
	bytes   int
	err     error         // why the stream ended
	waiting chan struct{} // closed with the next unit; nil if no reader waits
}

// Put adds a unit and removes the oldest ones that exceed the limit. The unit's data must not be changed any more.
func (r *Ring) Put(unit Unit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	limit := r.Bytes
	if limit <= 0 {
		limit = DefaultRingBytes
	}
	r.bytes += len(unit.Data) + unitOverhead
	for r.first < len(r.units) && r.bytes > limit {
		r.removeOldest()
	}
	if r.Keep > 0 && unit.Key {
		keep := r.before(unit.Received - int64(r.Keep))
		for r.first < keep {
			r.removeOldest()
		}
	}
	if r.first > 64 && r.first > len(r.units)/2 { // the amortised cost of a unit is constant
		kept := copy(r.units, r.units[r.first:])
		clear(r.units[kept:])
		r.units, r.first = r.units[:kept], 0
	}
	r.units = append(r.units, unit)
	r.wake()
}

// removeOldest removes a unit. The lock is held.
func (r *Ring) removeOldest() {
	r.bytes -= len(r.units[r.first].Data) + unitOverhead
	r.units[r.first] = Unit{}
	r.first++
	r.number++
}

// before returns the index of the newest key frame that was received at or before a time, -1 if there is none. The lock is held.
func (r *Ring) before(received int64) int {
	for i := len(r.units) - 1; i >= r.first; i-- {
		if r.units[i].Key && r.units[i].Received <= received {
			return i
		}
	}
	return -1
}

// End makes readers return err after the last unit. Only the first call has an effect.
func (r *Ring) End(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.wake()
}

// Receiving reports whether there are units and End was not called.
func (r *Ring) Receiving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first < len(r.units) && r.err == nil
}

// wake wakes all readers. The lock is held.
func (r *Ring) wake() {
	if r.waiting != nil {
		close(r.waiting)
		r.waiting = nil
	}
}

// Reader returns a reader that begins with the newest key frame, or with the next one if there is none.
func (r *Ring) Reader() *UnitReader {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.number + uint64(len(r.units)-r.first)
	for i := len(r.units) - 1; i >= r.first; i-- {
		if r.units[i].Key {
			next = r.number + uint64(i-r.first)
			break
		}
	}
	return &UnitReader{ring: r, next: next, seeking: true}
}

// ReaderAt returns a reader that begins with the newest key frame that was received at or before a time of CLOCK_MONOTONIC, with the oldest
// one if all are newer, or with the next one if there is none.
func (r *Ring) ReaderAt(received int64) *UnitReader {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.number
	if at := r.before(received); at >= 0 {
		next += uint64(at - r.first)
	}
	return &UnitReader{ring: r, next: next, seeking: true}
}

// UnitReader reads the units of a Ring in order. One goroutine uses it.
type UnitReader struct {
	ring    *Ring
	next    uint64 // number of the next unit
	seeking bool   // a key frame comes first
	skipped uint64
}

// Next waits for the next unit. A reader that has fallen behind the ring goes on with the next key frame.
func (u *UnitReader) Next(ctx context.Context) (Unit, error) {
	for {
		unit, wait, err := u.take()
		if wait == nil {
			return unit, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return Unit{}, ctx.Err()
		}
	}
}

// take returns the next unit, or a channel that is closed when there may be one.
func (u *UnitReader) take() (Unit, <-chan struct{}, error) {
	r := u.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.next < r.number {
		u.skipped += r.number - u.next
		u.next, u.seeking = r.number, true
	}
	for at := r.first + int(u.next-r.number); at < len(r.units); at++ {
		u.next++
		if u.seeking && !r.units[at].Key {
			u.skipped++
			continue
		}
		u.seeking = false
		return r.units[at], nil, nil
	}
	if r.err != nil {
		return Unit{}, nil, r.err
	}
	if r.waiting == nil {
		r.waiting = make(chan struct{})
	}
	return Unit{}, r.waiting, nil
}

// SkipToNewest goes on with the newest key frame if it is newer than the next unit.
func (u *UnitReader) SkipToNewest() {
	r := u.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := len(r.units) - 1; at >= r.first; at-- {
		number := r.number + uint64(at-r.first)
		if number <= u.next {
			return
		}
		if r.units[at].Key {
			u.skipped += number - u.next
			u.next = number
			return
		}
	}
}

// Seek makes the next unit a key frame, for a decoder that has lost its references.
func (u *UnitReader) Seek() { u.seeking = true }

// Skipped returns the number of units that were not read: before a key frame, because the reader was too slow, or by SkipToNewest.
func (u *UnitReader) Skipped() uint64 { return u.skipped }
