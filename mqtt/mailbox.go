package mqtt

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
)

// mailbox holds the newest message of one topic. Hand-off goes into next while a sender reads current, so neither waits for the other.
type mailbox struct {
	topic    string
	retain   bool
	interval time.Duration // least time between two sends
	queue    *sendQueue
	ledger   *ledger.Ledger

	discovery bool // it is Home Assistant's
	cleared   bool // its topic shall be empty; under the client's lock

	mu      sync.Mutex
	next    []byte // newest message handed over, when waiting
	waiting bool
	current []byte // what was last taken; the sender's while flying
	owed    bool   // current's delivery is not settled
	flying  bool   // a sender has current
	listed  bool   // in the queue's ready list
	due     time.Time
}

// put replaces the waiting message by what encode appends. It never blocks on I/O.
func (s *mailbox) put(encode func([]byte) []byte) {
	s.replace(func(next []byte) []byte { return encode(next[:0]) })
}

// putBytes replaces the waiting message by a copy.
func (s *mailbox) putBytes(message []byte) {
	s.replace(func(next []byte) []byte { return append(next[:0], message...) })
}

func (s *mailbox) replace(fill func([]byte) []byte) {
	s.mu.Lock()
	if s.waiting {
		s.displace()
	}
	s.next = fill(s.next)
	s.waiting = true
	s.ledger.Offer(1)
	list := !s.flying && !s.listed
	s.listed = s.listed || list
	s.mu.Unlock()
	if list {
		s.queue.push(s)
	}
}

// displace counts a message that gives way to a newer one. Of a retained topic only the newest value means anything.
func (s *mailbox) displace() {
	if s.retain {
		s.ledger.Supersede(1)
	} else {
		s.ledger.Drop(1)
	}
}

// take gives current to a sender; settle gives it back.
func (s *mailbox) take() {
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
func (s *mailbox) settle(delivered bool, now time.Time) {
	s.mu.Lock()
	s.flying = false
	s.due = now.Add(s.interval)
	if !delivered {
		s.current = slices.Clone(s.current) // paho may still be reading the old ones
	}
	if s.owed {
		if delivered {
			s.ledger.Deliver(1)
			s.owed = false
		} else if !s.retain {
			s.ledger.Drop(1)
			s.owed = false
		}
	}
	list := s.waiting && !s.listed
	s.listed = s.listed || list
	s.mu.Unlock()
	if list {
		s.queue.push(s)
	}
}

// setAside ends a send that cannot be made, because the message is too large. It reports whether the message is given up by that: not when
// it was
// given up or delivered before.
func (s *mailbox) setAside(now time.Time) bool {
	s.mu.Lock()
	given := s.owed
	if given {
		s.ledger.Drop(1)
		s.owed = false
	}
	s.mu.Unlock()
	s.settle(true, now)
	return given
}

// renew lists a retained message again, for a broker that may have forgotten it.
func (s *mailbox) renew() {
	s.mu.Lock()
	list := s.retain && (s.waiting || s.current != nil) && !s.listed && !s.flying
	s.listed = s.listed || list
	s.mu.Unlock()
	if list {
		s.queue.push(s)
	}
}

// appendPacket appends current as one QoS 0 PUBLISH packet (MQTT 3.1.1 section 3.3).
func (s *mailbox) appendPacket(buf []byte) []byte {
	header := byte(0x30)
	if s.retain {
		header |= 1
	}
	buf = append(buf, header)
	buf = binary.AppendUvarint(buf, uint64(2+len(s.topic)+len(s.current)))
	buf = binary.BigEndian.AppendUint16(buf, uint16(len(s.topic)))
	buf = append(buf, s.topic...)
	return append(buf, s.current...)
}

// holds reports whether a text is the newest message.
func (s *mailbox) holds(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting {
		return string(s.next) == text
	}
	return string(s.current) == text
}

// settled reports whether the newest message was delivered.
func (s *mailbox) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.waiting && !s.owed
}

func (s *mailbox) remaining(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due.Sub(now)
}
