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
	granted Wakeup // signalled when the device has become this loop's while it waited
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
	d := &DeviceShare{of: s, weight: 1}
	s.members = append(s.members, d)
	return d
}

// notify sets what is signalled when the loop gets the device. It is called before the first acquire.
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
	d.weight = float64(max(sum, 1))
}

// acquire requests the device. If it reports false, another loop has it, and the loop is signalled when the device is its own.
func (d *DeviceShare) acquire() bool {
	if d == nil {
		return true
	}
	s := d.of
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.holder {
	case d:
		d.account()
		s.now = d.served
	case nil:
		s.grant(d)
	default:
		d.waiting = true
		return false
	}
	return true
}

// wanted reports whether a loop waits for the device that was served less than this one, which has it.
func (d *DeviceShare) wanted() bool {
	if d == nil {
		return false
	}
	s := d.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != d {
		return false
	}
	d.account()
	for _, other := range s.members {
		if other.waiting && s.start(other) <= d.served {
			return true
		}
	}
	return false
}

// release gives the device up, or stops waiting for it. The waiting loop that was served least gets it.
func (d *DeviceShare) release() {
	if d == nil {
		return
	}
	s := d.of
	s.mu.Lock()
	defer s.mu.Unlock()
	d.waiting = false
	if s.holder != d {
		return
	}
	d.account()
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
func (s *SharedDevice) start(d *DeviceShare) float64 { return max(d.served, s.now) }

func (s *SharedDevice) grant(d *DeviceShare) {
	d.served = s.start(d)
	s.holder, s.now = d, d.served
	d.waiting, d.since = false, s.clock()
}

// account adds the time since the last call to the loop's account.
func (d *DeviceShare) account() {
	now := d.of.clock()
	d.served += float64(now-d.since) / d.weight
	d.since = now
}
