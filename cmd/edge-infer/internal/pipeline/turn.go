package pipeline

import (
	"sync"

	"github.com/edge-infer/edge-infer/capture"
)

// SharedDevice share a device among frame loops whose networks differ, so that each gets the time that its cameras' priorities ask for:
// start-time fair queueing as in schedule, by the time that requests take. A loop that has the device keeps it, between its requests too,
// until another that was served less wants it, or until it has no frame. The zero value is ready.
type SharedDevice struct {
	mu      sync.Mutex
	members []*DeviceShare
	holder  *DeviceShare
	now     float64 // virtual time: what the loop that was served last had been given, by weight, when its turn began
	clock   func() int64
}

// DeviceShare is one loop's place.
type DeviceShare struct {
	of      *SharedDevice
	granted Wakeup // rung when the device has become this loop's while it waited
	weight  float64
	served  float64 // nanoseconds by weight
	since   int64   // what is not in served yet, while it holds the device
	waiting bool
}

// Join gives one more loop its place.
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

// tell has the loop hear by that bell that the device has become its own. It is called before the first take.
func (t *DeviceShare) tell(bell Wakeup) {
	if t != nil {
		t.granted = bell
	}
}

// weigh sets the loop's share.
func (t *DeviceShare) weigh(lanes []*lane) {
	if t == nil {
		return
	}
	sum := 0
	for _, l := range lanes {
		sum += max(l.Priority, 1)
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.weight = float64(max(sum, 1))
}

// take asks for the device. Where it reports false another loop has it, and the bell rings when it is this one's.
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

// end gives the device up, where the loop has it or waits for it, to the one among those that wait that was served least.
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

// settle adds the time since the last one to what the loop was given.
func (t *DeviceShare) settle() {
	now := t.of.clock()
	t.served += float64(now-t.since) / t.weight
	t.since = now
}
