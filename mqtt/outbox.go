package mqtt

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// slot holds the newest message of one topic. Hand-off goes into next while a sender reads current, so neither waits for the other.
type slot struct {
	topic    string
	retain   bool
	interval time.Duration // least time between two sends
	lane     *lane
	ledger   *ledger

	withdrawn bool // its topic shall be empty; under the client's lock

	mu      sync.Mutex
	next    content // newest message handed over, when waiting
	waiting bool
	current content // what was last taken; the sender's while flying
	owed    bool    // current's delivery is not settled
	flying  bool    // a sender has current
	listed  bool    // in the lane's ready list
	due     time.Time
}

// content is a message: its bytes or, because the frame loop has better things to do than to encode, detections that the sender encodes.
type content struct {
	bytes      []byte
	detections Detections
	device     string // of the detections; empty when bytes are the message
}

// put replaces the waiting message by what encode appends. It never blocks on I/O.
func (s *slot) put(encode func([]byte) []byte) {
	s.replace(func(c *content) { c.bytes = encode(c.bytes[:0]) })
}

// putDetections replaces the waiting message by a copy of the detections.
func (s *slot) putDetections(d *Detections, device string) {
	s.replace(func(c *content) {
		objects := append(c.detections.Objects[:0], d.Objects...)
		c.detections, c.device = *d, device
		c.detections.Objects = objects
	})
}

func (s *slot) replace(fill func(*content)) {
	s.mu.Lock()
	if s.waiting {
		s.displace()
	}
	fill(&s.next)
	s.waiting = true
	s.ledger.offer(1)
	list := !s.flying && !s.listed
	s.listed = s.listed || list
	s.mu.Unlock()
	if list {
		s.lane.push(s)
	}
}

// displace counts a message that gives way to a newer one. Of a retained topic only the newest value means anything.
func (s *slot) displace() {
	if s.retain {
		s.ledger.supersede(1)
	} else {
		s.ledger.drop(1)
	}
}

// take gives current to a sender; settle gives it back.
func (s *slot) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.flying = false, true
	if s.waiting {
		if s.owed {
			s.displace()
		}
		s.next, s.current = s.current, s.next
		s.waiting, s.owed = false, true
	}
}

// settle ends a send. A retained message that was not delivered stays owed: the next connection sends it again.
func (s *slot) settle(delivered bool, now time.Time) {
	s.mu.Lock()
	s.flying = false
	s.due = now.Add(s.interval)
	if !delivered {
		s.current.bytes = slices.Clone(s.current.bytes) // paho may still be reading the old ones
	}
	if s.owed {
		if delivered {
			s.ledger.deliver(1)
			s.owed = false
		} else if !s.retain {
			s.ledger.drop(1)
			s.owed = false
		}
	}
	list := s.waiting && !s.listed
	s.listed = s.listed || list
	s.mu.Unlock()
	if list {
		s.lane.push(s)
	}
}

// renew lists a retained message again, for a broker that may have forgotten it.
func (s *slot) renew() {
	s.mu.Lock()
	list := s.retain && (s.waiting || s.current.bytes != nil) && !s.listed && !s.flying
	s.listed = s.listed || list
	s.mu.Unlock()
	if list {
		s.lane.push(s)
	}
}

// appendPacket appends current as one QoS 0 PUBLISH packet (MQTT 3.1.1 section 3.3).
func (s *slot) appendPacket(buf []byte) []byte {
	if c := &s.current; c.device != "" {
		c.bytes = c.detections.AppendJSON(c.bytes[:0], c.device)
	}
	header := byte(0x30)
	if s.retain {
		header |= 1
	}
	buf = append(buf, header)
	buf = binary.AppendUvarint(buf, uint64(2+len(s.topic)+len(s.current.bytes)))
	buf = binary.BigEndian.AppendUint16(buf, uint16(len(s.topic)))
	buf = append(buf, s.topic...)
	return append(buf, s.current.bytes...)
}

// lane is the list of slots that wait for one sender.
type lane struct {
	wake chan struct{} // holds a token when there may be work

	mu    sync.Mutex
	ready []*slot
}

func newLane() *lane { return &lane{wake: make(chan struct{}, 1)} }

func (l *lane) push(s *slot) {
	l.mu.Lock()
	l.ready = append(l.ready, s)
	l.mu.Unlock()
	l.signal()
}

func (l *lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the first slot that is due, taken. With none due it returns how long until one is; a negative wait means that the list is
// empty.
func (l *lane) take(now time.Time) (*slot, time.Duration) {
	l.mu.Lock()
	var found *slot
	wait := time.Duration(-1)
	for i, s := range l.ready {
		if s.interval > 0 {
			if left := s.remaining(now); left > 0 {
				if wait < 0 || left < wait {
					wait = left
				}
				continue
			}
		}
		found = s
		copy(l.ready[i:], l.ready[i+1:])
		l.ready = l.ready[:len(l.ready)-1]
		break
	}
	l.mu.Unlock()
	if found == nil {
		return nil, wait
	}
	found.take()
	return found, 0
}

// settled reports whether the newest message was delivered.
func (s *slot) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.waiting && !s.owed
}

func (s *slot) remaining(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due.Sub(now)
}

func (l *lane) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ready) == 0
}
