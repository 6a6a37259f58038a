package mqtt

import (
	"encoding/binary"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
)

// mailbox holds the newest message of one topic. Put writes next while a sender reads current, so neither waits for the other. The exported
// fields except Cleared must not change after the first Put.
type mailbox struct {
	Topic    string
	Retain   bool
	Interval time.Duration // least time between two sends
	Queue    *mailboxQueue
	Ledger   *ledger.Ledger

	Discovery bool // Home Assistant discovery message
	Cleared   bool // the topic is being cleared; guarded by Client.mu

	mu      sync.Mutex
	next    []byte // newest message, valid if waiting
	waiting bool
	current []byte // last message taken; owned by the sender while sending
	owed    bool   // the delivery of current is not settled
	sending bool   // a sender uses current
	urgent  bool   // the next send does not wait for the interval
	listed  bool   // in the queue's ready list
	due     time.Time
}

// Put replaces the waiting message with the bytes that encode appends. It never blocks on I/O.
func (s *mailbox) Put(encode func([]byte) []byte) {
	s.replace(func(next []byte) []byte { return encode(next[:0]) })
}

// PutNumber replaces the waiting message with a number. The first object after none does not wait for the interval.
func (s *mailbox) PutNumber(n int) {
	s.replace(func(next []byte) []byte {
		s.urgent = s.urgent || n > 0 && string(s.current) == "0"
		return strconv.AppendInt(next[:0], int64(n), 10)
	})
}

// PutUrgent replaces the waiting message with text, which does not wait for the interval.
func (s *mailbox) PutUrgent(text string) {
	s.replace(func(next []byte) []byte {
		s.urgent = true
		return append(next[:0], text...)
	})
}

// PutBytes replaces the waiting message with a copy of message.
func (s *mailbox) PutBytes(message []byte) {
	s.replace(func(next []byte) []byte { return append(next[:0], message...) })
}

func (s *mailbox) replace(fill func([]byte) []byte) {
	s.mu.Lock()
	if s.waiting {
		s.countReplaced()
	}
	s.next = fill(s.next)
	s.waiting = true
	s.Ledger.Offer(1)
	list := !s.sending && !s.listed
	hurry := s.urgent && s.listed
	s.listed = s.listed || list
	s.mu.Unlock()
	switch {
	case list:
		s.Queue.push(s)
	case hurry:
		s.Queue.Signal()
	}
}

// countReplaced counts a message replaced by a newer one: superseded on a retained topic, dropped otherwise.
func (s *mailbox) countReplaced() {
	if s.Retain {
		s.Ledger.Supersede(1)
	} else {
		s.Ledger.Drop(1)
	}
}

// take hands current to a sender until Settle.
func (s *mailbox) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.sending, s.urgent = false, true, false
	if s.waiting {
		if s.owed {
			s.countReplaced()
		}
		s.next, s.current = s.current, s.next
		s.waiting, s.owed = false, true
	}
}

// Settle ends a send. A retained message that was not delivered remains owed: the next connection sends it again.
func (s *mailbox) Settle(delivered bool, now time.Time) {
	s.mu.Lock()
	s.sending = false
	s.due = now.Add(s.Interval)
	if !delivered {
		s.current = slices.Clone(s.current) // paho may still be reading the old ones
	}
	if s.owed {
		if delivered {
			s.Ledger.Deliver(1)
			s.owed = false
		} else if !s.Retain {
			s.Ledger.Drop(1)
			s.owed = false
		}
	}
	list := s.waiting && !s.listed
	s.listed = s.listed || list
	s.mu.Unlock()
	if list {
		s.Queue.push(s)
	}
}

// Discard ends the send of a message that is too large. It reports whether the message counts as dropped now: not if it was dropped or
// delivered before.
func (s *mailbox) Discard(now time.Time) bool {
	s.mu.Lock()
	given := s.owed
	if given {
		s.Ledger.Drop(1)
		s.owed = false
	}
	s.mu.Unlock()
	s.Settle(true, now)
	return given
}

// Renew queues a retained message again, for a broker that may have lost it.
func (s *mailbox) Renew() {
	s.mu.Lock()
	list := s.Retain && (s.waiting || s.current != nil) && !s.listed && !s.sending
	s.listed = s.listed || list
	s.urgent = s.Retain
	s.mu.Unlock()
	if list {
		s.Queue.push(s)
	}
}

// AppendPacket appends current as one QoS 0 PUBLISH packet (MQTT 3.1.1 section 3.3).
func (s *mailbox) AppendPacket(buf []byte) []byte {
	header := byte(0x30)
	if s.Retain {
		header |= 1
	}
	buf = append(buf, header)
	buf = binary.AppendUvarint(buf, uint64(2+len(s.Topic)+len(s.current)))
	buf = binary.BigEndian.AppendUint16(buf, uint16(len(s.Topic)))
	buf = append(buf, s.Topic...)
	return append(buf, s.current...)
}

// Message returns the taken message, which the sender may use until Settle.
func (s *mailbox) Message() []byte { return s.current }

// Holds reports whether text is the newest message.
func (s *mailbox) Holds(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting {
		return string(s.next) == text
	}
	return string(s.current) == text
}

// Settled reports whether the newest message was delivered.
func (s *mailbox) Settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.waiting && !s.owed
}

func (s *mailbox) remaining(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.urgent {
		return 0
	}
	return s.due.Sub(now)
}
