package mqtt

import (
	"math"
	"slices"
	"sync"
	"time"
)

// packetLimits detects the largest packet that each broker accepts. MQTT 3.1.1 cannot report it, and a broker closes the connection on a
// larger packet without a reason: packets as large as the smallest on which it did so twice are discarded.
type packetLimits struct {
	MaxPacket int // configured limit in bytes, 0 for none; set before use, or by SetMaximum

	mu      sync.Mutex
	brokers map[string]*brokerLimit
	largest int             // largest confirmed packet of all brokers
	aside   Oversize        // last discarded message and their number
	named   map[string]bool // logged topics
}

// brokerLimit is the knowledge about one broker.
type brokerLimit struct {
	proven  int // largest accepted packet
	strikes int // consecutive connections closed with a packet larger than proven in flight
	suspect int // smallest of these packets
	doubts  int // consecutive connections closed with a packet in flight that was accepted before
	doubted int // smallest of these packets
	limit   int // packets of this size or larger are discarded, 0 for no limit
	until   time.Time
}

// Oversize describes messages that exceed the broker's limit. Retained messages count once for each value.
type Oversize struct {
	Messages uint64 `json:"messages"` // discarded since Open
	Topic    string `json:"topic"`    // of the last one
	Bytes    int    `json:"bytes"`    // of its packet
	Limit    int    `json:"limit"`    // packets of this many bytes or more are discarded
}

const (
	// suspectSize is the smallest suspected packet: brokers with a lower limit are unknown, restarts of brokers are common.
	suspectSize = 16 << 10
	strikeLimit = 2
	// doubtLimit is the number of lost packets of an accepted size after which that size is not trusted any more: the broker may have been
	// restarted with a lower limit.
	doubtLimit = 4
	// limitLifetime is how long a detected limit applies, because the broker's configuration may change.
	limitLifetime = time.Hour
)

// packetSize returns the size of a PUBLISH packet in bytes (MQTT 3.1.1 section 3.3).
func packetSize(topic string, payload int, qos byte) int {
	rest := 2 + len(topic) + payload
	if qos > 0 {
		rest += 2
	}
	header := 2
	for n := rest; n >= 0x80; n >>= 7 {
		header++
	}
	return header + rest
}

// Limit returns the size in bytes from which on packets are not sent to a broker.
func (l *packetLimits) Limit(broker string, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := math.MaxInt
	if l.MaxPacket > 0 {
		limit = l.MaxPacket + 1
	}
	if b := l.brokers[broker]; b != nil && b.limit > 0 {
		if now.After(b.until) {
			b.limit, b.strikes, b.suspect = 0, 0, 0
		} else {
			limit = min(limit, b.limit)
		}
	}
	return limit
}

// SetMaximum sets the configured limit, 0 for none.
func (l *packetLimits) SetMaximum(bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.MaxPacket = bytes
}

// Confirm records that a broker accepted a packet of this size.
func (l *packetLimits) Confirm(broker string, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest = max(l.largest, size)
	b := l.broker(broker)
	if b.proven = max(b.proven, size); b.proven >= b.suspect {
		b.strikes, b.suspect = 0, 0
	}
	if size >= b.doubted {
		b.doubts, b.doubted = 0, 0
	}
}

func (l *packetLimits) broker(name string) *brokerLimit {
	b := l.brokers[name]
	if b == nil {
		b = &brokerLimit{}
		if l.brokers == nil {
			l.brokers = map[string]*brokerLimit{}
		}
		l.brokers[name] = b
	}
	return b
}

// Lost records that a broker closed a connection with unconfirmed packets in flight; size is that of the largest. It returns the resulting
// limit, 0 for none.
func (l *packetLimits) Lost(broker string, size int, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.broker(broker)
	if size < suspectSize || size <= b.proven {
		b.strikes, b.suspect = 0, 0
		b.doubt(size)
		return 0
	}
	if b.suspect == 0 || size < b.suspect {
		b.suspect = size
	}
	if b.strikes++; b.strikes < strikeLimit {
		return 0
	}
	b.limit, b.until = b.suspect, now.Add(limitLifetime)
	b.strikes, b.suspect = 0, 0
	return b.limit
}

// doubt records that a packet of an accepted size was lost.
func (b *brokerLimit) doubt(size int) {
	if size < suspectSize {
		return
	}
	if b.doubts == 0 || size < b.doubted {
		b.doubted = size
	}
	if b.doubts++; b.doubts == doubtLimit {
		b.proven, b.doubts, b.doubted = 0, 0, 0
	}
}

// CountTooLarge counts a discarded message and reports whether to log it. A repetition of a retained message counts if its topic was not
// logged yet: a broker that closed the connection on it may have seemed to accept it.
func (l *packetLimits) CountTooLarge(topic string, size, limit int, repetition bool) bool {
	const namedLimit = 100
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.named[topic]
	if repetition && known {
		return false
	}
	l.aside = Oversize{Messages: l.aside.Messages + 1, Topic: topic, Bytes: size, Limit: limit}
	if known || len(l.named) >= namedLimit {
		return false
	}
	if l.named == nil {
		l.named = map[string]bool{}
	}
	l.named[topic] = true
	return true
}

// Read returns the size of the largest accepted packet in bytes and the discarded messages.
func (l *packetLimits) Read() (largest int, aside Oversize) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.largest, l.aside
}

// unconfirmedPackets tracks the large packets of a session that the broker may not have read yet.
type unconfirmedPackets struct {
	mu      sync.Mutex
	count   uint64
	packets []*unconfirmedPacket
}

// unconfirmedPacket is a packet whose write has begun.
type unconfirmedPacket struct {
	order uint64 // 0 until it is written completely
	size  int
}

// Begin records a packet before it is written. It returns nil if the packet is smaller than suspectSize.
func (u *unconfirmedPackets) Begin(size int) *unconfirmedPacket {
	if size < suspectSize {
		return nil
	}
	p := &unconfirmedPacket{size: size}
	u.mu.Lock()
	u.packets = append(u.packets, p)
	u.mu.Unlock()
	return p
}

// Written records that a packet was written completely; p may be nil.
func (u *unconfirmedPackets) Written(p *unconfirmedPacket) {
	if p == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	p.order = u.count
}

// Mark returns the order of the last written packet. Packets begun later reach the broker after it; the order of packets written
// concurrently is unknown.
func (u *unconfirmedPackets) Mark() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count
}

// Confirm removes an acknowledged packet and those up to mark, which was taken before it was begun. It returns the size of the largest.
func (u *unconfirmedPackets) Confirm(answered *unconfirmedPacket, mark uint64) (largest int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.packets = slices.DeleteFunc(u.packets, func(p *unconfirmedPacket) bool {
		confirmed := p == answered || p.order != 0 && p.order <= mark
		if confirmed {
			largest = max(largest, p.size)
		}
		return confirmed
	})
	return largest
}

// Largest returns the size of the largest unconfirmed packet, or 0.
func (u *unconfirmedPackets) Largest() (size int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.packets {
		size = max(size, p.size)
	}
	return size
}
