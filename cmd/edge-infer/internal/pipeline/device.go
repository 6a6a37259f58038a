package pipeline

import (
	"sync"

	"github.com/edge-infer/edge-infer/capture"
)

// SharedDevice shares a device among frame loops with different networks, so that each gets the time its cameras' priorities ask for:
// start-time fair queueing as in schedule, by the duration of requests. A loop keeps the device, also between its requests, until a loop
// that was served less wants it or until it has no frame. The zero value is ready.
type SharedDevice struct {
	mu      sync.Mutex
	members []*DeviceShare
	holder  *DeviceShare
	now     float64 // virtual time: the weighted time of the loop served last, at the start of its turn
	clock   func() int64
}

// DeviceShare is one loop's place.
type DeviceShare struct {
	of      *SharedDevice
	granted Wakeup // rung when the device has become this loop's while it waited
	weight  float64
	served  float64 // nanoseconds by weight
	since   int64   // start of the time that is not in served yet, while it holds the device
	waiting bool
}

// Join adds a loop.
func (s *SharedDevice) Join() *DeviceShare {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock == nil {
		s.clock = capture.Monotonic
	}
	t := &DeviceShare{of: s, weight: 1}
	s.members = append(s.members, t)
	return t
}

// notify sets what is signalled when the loop gets the device. It is called before the first take.
func (t *DeviceShare) notify(bell Wakeup) {
	if t != nil {
		t.granted = bell
	}
}

// weigh sets the loop's share.
func (t *DeviceShare) weigh(streams []*stream) {
	if t == nil {
		return
	}
	sum := 0
	for _, l := range streams {
		sum += max(l.Priority, 1)
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.weight = float64(max(sum, 1))
}

// take requests the device. If it reports false, another loop has it, and the signal of tell comes when it is this loop's.
func (t *DeviceShare) take() bool {
	if t == nil {
		return true
	}
	s := t.of
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.holder {
	case t:
		t.settle()
		s.now = t.served
	case nil:
		s.grant(t)
	default:
		t.waiting = true
		return false
	}
	return true
}

// wanted reports whether a loop waits for the device that was served less than this one, which has it.
func (t *DeviceShare) wanted() bool {
	if t == nil {
		return false
	}
	s := t.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != t {
		return false
	}
	t.settle()
	for _, other := range s.members {
		if other.waiting && s.start(other) <= t.served {
			return true
		}
	}
	return false
}

// end releases the device, or stops waiting for it. The waiting loop that was served least gets it.
func (t *DeviceShare) end() {
	if t == nil {
		return
	}
	s := t.of
	s.mu.Lock()
	defer s.mu.Unlock()
	t.waiting = false
	if s.holder != t {
		return
	}
	t.settle()
	s.holder = nil
	var next *DeviceShare
	for _, other := range s.members {
		if other.waiting && (next == nil || s.start(other) < s.start(next)) {
			next = other
		}
	}
	if next == nil {
		return
	}
	s.grant(next)
	next.granted.Signal()
}

// start is where a loop stands: one that wanted nothing for a while has saved nothing up.
func (s *SharedDevice) start(t *DeviceShare) float64 { return max(t.served, s.now) }

func (s *SharedDevice) grant(t *DeviceShare) {
	t.served = s.start(t)
	s.holder, s.now = t, t.served
	t.waiting, t.since = false, s.clock()
}

// settle adds the time since the last call to the loop's account.
func (t *DeviceShare) settle() {
	now := t.of.clock()
	t.served += float64(now-t.since) / t.weight
	t.since = now
}
