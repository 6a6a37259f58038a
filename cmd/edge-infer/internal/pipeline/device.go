package pipeline

import (
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

const (
	// shareLead is by how much weighted device time a loop may be ahead of another one. It covers the gaps between a loop's requests, which
	// are no sign of a larger share.
	shareLead = 20 * time.Millisecond
	// shareAbsence is after which time without progress a loop no longer holds others back.
	shareAbsence = 10 * time.Second
)

// SharedDevice shares a device among frame loops, so that each gets the time its cameras' priorities ask for. Loops have requests in flight
// at the same time and none waits for another one's request, in an engine that they share neither: it has slots for each of them, and the
// operating system or the GPU runs the slots side by side. A loop is held back only while it is ahead of its share: time during which n
// loops are at work counts as 1/n for each of them, divided by its weight (generalized processor sharing). The zero value is ready.
type SharedDevice struct {
	mu      sync.Mutex
	members []*DeviceShare
	clock   func() int64
	counted int64   // until when the time of the members at work is in their accounts
	now     float64 // virtual time: the smallest account of those that were active last
}

// DeviceShare is one loop's place. Its methods are called by the loop's goroutine; those of nil, the place of a loop that has its device
// alone, do nothing.
type DeviceShare struct {
	of      *SharedDevice
	granted Wakeup      // signalled when a loop that waits should try again
	again   *time.Timer // signals granted when the loop is no longer ahead
	weight  float64
	served  float64 // account: nanoseconds at work, divided by the number of loops at work and by weight
	seen    int64   // when the loop called last
	busy    bool    // at work: from acquire to release
	waiting bool    // acquire reported false
}

// Join adds a loop.
func (s *SharedDevice) Join() *DeviceShare {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock == nil {
		s.clock = capture.Monotonic
	}
	d := &DeviceShare{of: s, weight: 1}
	s.members = append(s.members, d)
	return d
}

// notify sets what is signalled when the loop should try again. It is called before the first acquire.
func (d *DeviceShare) notify(wakeup Wakeup) {
	if d != nil {
		d.granted = wakeup
	}
}

// weigh sets the loop's share.
func (d *DeviceShare) weigh(streams []*stream) {
	if d == nil {
		return
	}
	sum := 0
	for _, camera := range streams {
		sum += max(camera.Priority, 1)
	}
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.of.account()
	d.weight = float64(max(sum, 1))
}

// acquire reports whether the loop may submit requests. If not, it is signalled when it should try again.
func (d *DeviceShare) acquire() bool {
	if d == nil {
		return true
	}
	s := d.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account()
	d.seen = s.counted
	if !d.busy && !d.waiting {
		d.served = max(d.served, s.now) // one that wanted nothing for a while has saved nothing up
	}
	if !d.busy && d.held() {
		d.waiting = true
		return false
	}
	d.busy, d.waiting = true, false
	return true
}

// wanted reports whether the loop, which may submit, should finish what is in flight and release the device for now.
func (d *DeviceShare) wanted() bool {
	if d == nil {
		return false
	}
	s := d.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if !d.busy {
		return false
	}
	s.account()
	d.seen = s.counted
	_, ahead := d.ahead()
	return ahead
}

// release ends the loop's work, or its waiting. Those that waited for it may go on.
func (d *DeviceShare) release() {
	if d == nil {
		return
	}
	s := d.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account()
	d.busy, d.waiting = false, false
	for _, other := range s.members {
		if other.waiting {
			other.granted.Signal()
		}
	}
}

// held reports whether a loop must wait because it is ahead of its share. Then a timer signals it.
func (d *DeviceShare) held() bool {
	until, ahead := d.ahead()
	if ahead && d.again == nil {
		d.again = time.AfterFunc(until, d.granted.Signal)
	} else if ahead {
		d.again.Reset(until)
	}
	return ahead
}

// ahead reports whether a loop that is at work, or wants to be, was served less by more than shareLead, and for how long
// the loop must wait at least. Loops that make no progress do not count: what they wait for may never come.
func (d *DeviceShare) ahead() (until time.Duration, ahead bool) {
	s := d.of
	for _, other := range s.members {
		absent := s.counted-other.seen > int64(shareAbsence)
		if other == d || absent || !other.busy && !other.waiting {
			continue
		}
		lead := d.served - other.served - float64(shareLead)
		if lead > 0 {
			until = max(until, time.Duration(lead*other.weight), time.Millisecond)
		}
	}
	return until, until > 0
}

// account adds the time since the last call to the accounts of the loops at work.
func (s *SharedDevice) account() {
	now := s.clock()
	elapsed := float64(now - s.counted)
	s.counted = now
	working := 0
	for _, d := range s.members {
		if d.busy {
			working++
		}
	}
	least, active := 0.0, false
	for _, d := range s.members {
		if d.busy {
			d.served += elapsed / float64(working) / d.weight
		}
		if (d.busy || d.waiting) && (!active || d.served < least) {
			least, active = d.served, true
		}
	}
	if active {
		s.now = max(s.now, least)
	}
}
