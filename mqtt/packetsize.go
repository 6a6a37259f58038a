package mqtt

import (
	"math"
	"slices"
	"sync"
	"time"
)

// packetLimits finds out how large a packet each broker takes. MQTT 3.1.1 has no way to ask, and a broker that gets a larger one closes the
// connection without a word: what is set aside then is the smallest packet on which it did so twice.
type packetLimits struct {
	MaxPacket int // bytes that any broker may be sent, 0 for as much as it takes; set before anything else

	mu      sync.Mutex
	brokers map[string]*brokerLimit
	largest int             // packet that was confirmed, of any broker
	aside   Oversize        // what was set aside last, and how often
	named   map[string]bool // topics that were logged
}

// brokerLimit is what is known of one broker.
type brokerLimit struct {
	proven  int // the largest packet that it took
	strikes int // connections in a row that it closed with a packet over proven on its way
	suspect int // the smallest of those
	doubts  int // connections in a row that it closed with a packet on its way that it had taken once
	doubted int // the smallest of those
	limit   int // packets of so many bytes are not sent any more, 0 for none
	until   time.Time
}

// Oversize names messages that are larger than the broker takes. Retained ones count once for each value.
type Oversize struct {
	Messages uint64 `json:"messages"` // that were set aside since Open
	Topic    string `json:"topic"`    // of the last of them
	Bytes    int    `json:"bytes"`    // of its packet
	Limit    int    `json:"limit"`    // bytes from which on packets are set aside
}

const (
	// suspectSize is the smallest packet that is suspected: brokers that take less than this are not known, brokers that are restarted are.
	suspectSize = 16 << 10
	strikeLimit = 2
	// doubtLimit is how often a packet of a size that a broker took once is lost until that says nothing any more: it may have been started
	// anew with a lower limit.
	doubtLimit = 4
	// limitLifetime is how long a limit that was found out counts: somebody may have raised it.
	limitLifetime = time.Hour
)

// packetSize is how many bytes a PUBLISH packet has (MQTT 3.1.1 section 3.3).
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

// Limit is the number of bytes from which on packets are not sent to a broker.
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

// Confirm notes that a broker has taken a packet of that size.
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

// Lost notes that a broker has closed a connection with an unconfirmed packet on its way, of the size of the largest such. It returns the
// limit that follows from it, 0 for none.
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

// doubt notes that a packet was lost that the broker had taken once.
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

// SetAside counts a message that is not sent, and reports whether it is worth a line in the log. A repetition of a retained one counts when
// its topic was not named yet: a broker that closed the connection on it may have seemed to take it.
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

// Read returns the largest packet that any broker has taken, in bytes, and what was set aside.
func (l *packetLimits) Read() (largest int, aside Oversize) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.largest, l.aside
}

// unconfirmedPackets are the large packets of a session that the broker may not have read yet.
type unconfirmedPackets struct {
	mu      sync.Mutex
	count   uint64
	packets []*unconfirmedPacket
}

// unconfirmedPacket is one that was begun.
type unconfirmedPacket struct {
	order uint64 // 0 while it may not be written as a whole
	size  int
}

// Begin notes a packet that is about to be written; nil when it is too small to be suspected of anything.
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

// Written gives a packet, nil for one that is not suspected, its place in the order of those that were written.
func (u *unconfirmedPackets) Written(p *unconfirmedPacket) {
	if p == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	p.order = u.count
}

// Mark is the place of the last packet that was written. What is begun later comes behind it on its way to the broker; of two packets that
// are written at the same time nobody knows which is the first.
func (u *unconfirmedPackets) Mark() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count
}

// Confirm takes out a packet that the broker has answered, and those up to the mark of before it was begun. It returns the size of the
// largest.
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

// Largest is the size of the largest that waits, 0 when there is none.
func (u *unconfirmedPackets) Largest() (size int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.packets {
		size = max(size, p.size)
	}
	return size
}
