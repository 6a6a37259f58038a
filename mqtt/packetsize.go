package mqtt

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"syscall"
	"time"
)

// packetSizes finds out how large a packet each broker takes. MQTT 3.1.1 has no way to ask, and a broker that gets a larger one closes the
// connection without a word: what is set aside then is the smallest packet on which it did so twice.
type packetSizes struct {
	most int // that any broker may be sent, 0 for as much as it takes

	mu      sync.Mutex
	brokers map[string]*brokerSize
	largest int             // packet that was confirmed, of any broker
	aside   Oversize        // what was set aside last, and how often
	named   map[string]bool // topics that were logged
}

// brokerSize is what is known of one broker.
type brokerSize struct {
	proven  int // the largest packet that it took
	strikes int // connections in a row that it closed with a packet over proven on its way
	suspect int // the smallest of those
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
	// limitTime is how long a limit that was found out counts: somebody may have raised it.
	limitTime = time.Hour
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

// limit is the number of bytes from which on packets are not sent to a broker.
func (p *packetSizes) limit(broker string, now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := math.MaxInt
	if p.most > 0 {
		limit = p.most + 1
	}
	if b := p.brokers[broker]; b != nil && b.limit > 0 {
		if now.After(b.until) {
			b.limit, b.strikes, b.suspect = 0, 0, 0
		} else {
			limit = min(limit, b.limit)
		}
	}
	return limit
}

func (p *packetSizes) confirm(broker string, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.largest = max(p.largest, size)
	b := p.broker(broker)
	if b.proven = max(b.proven, size); b.proven >= b.suspect {
		b.strikes, b.suspect = 0, 0
	}
}

func (p *packetSizes) broker(name string) *brokerSize {
	b := p.brokers[name]
	if b == nil {
		b = &brokerSize{}
		p.brokers[name] = b
	}
	return b
}

// lost notes that a broker has closed a connection with an unconfirmed packet on its way, of the size of the largest such. It returns the
// limit
// that follows from it, 0 for none.
func (p *packetSizes) lost(broker string, size int, now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.broker(broker)
	if size < suspectSize || size <= b.proven {
		b.strikes, b.suspect = 0, 0
		return 0
	}
	if b.suspect == 0 || size < b.suspect {
		b.suspect = size
	}
	if b.strikes++; b.strikes < strikeLimit {
		return 0
	}
	b.limit, b.until = b.suspect, now.Add(limitTime)
	b.strikes, b.suspect = 0, 0
	return b.limit
}

// setAside counts a message that is not sent, and reports whether it is worth a line in the log. A repetition of a retained one counts when
// its
// topic was not named yet: a broker that closed the connection on it may have seemed to take it.
func (p *packetSizes) setAside(topic string, size, limit int, repetition bool) bool {
	const namedLimit = 100
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.named[topic]
	if repetition && known {
		return false
	}
	p.aside = Oversize{Messages: p.aside.Messages + 1, Topic: topic, Bytes: size, Limit: limit}
	if known || len(p.named) >= namedLimit {
		return false
	}
	p.named[topic] = true
	return true
}

func (p *packetSizes) read() (largest int, aside Oversize) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.largest, p.aside
}

// tooLarge reports a message that is not sent.
func (c *Client) tooLarge(topic string, size, limit int, repetition bool) {
	if c.sizes.setAside(topic, size, limit, repetition) {
		c.Logger.Warn("mqtt message is larger than the broker takes, it is set aside", "topic", topic, "bytes", size, "limit", limit-1)
	}
}

// unconfirmed are the large packets of a session that the broker may not have read yet.
type unconfirmed struct {
	mu      sync.Mutex
	count   uint64
	packets []*sentPacket
}

type sentPacket struct {
	order uint64 // 0 until it was written
	size  int
}

// begin notes a packet that is about to be written; nil when it is too small to be suspected of anything.
func (u *unconfirmed) begin(size int) *sentPacket {
	if size < suspectSize {
		return nil
	}
	p := &sentPacket{size: size}
	u.mu.Lock()
	u.packets = append(u.packets, p)
	u.mu.Unlock()
	return p
}

// written gives a packet its place in the order of those that were written, and returns that.
func (u *unconfirmed) written(p *sentPacket) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	if p != nil {
		p.order = u.count
	}
	return u.count
}

// confirm takes out the packets up to a place in the order, because the broker has answered one that came behind them. It returns the size
// of the
// largest.
func (u *unconfirmed) confirm(order uint64) (largest int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.packets = slices.DeleteFunc(u.packets, func(p *sentPacket) bool {
		confirmed := p.order != 0 && p.order <= order
		if confirmed {
			largest = max(largest, p.size)
		}
		return confirmed
	})
	return largest
}

func (u *unconfirmed) largest() (size int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.packets {
		size = max(size, p.size)
	}
	return size
}

// blame looks at how a session with a broker has ended: it notes a packet that may be the reason, and names it in the error.
func (c *Client) blame(s *session, broker string, err error) error {
	if !closedByBroker(err) {
		return err
	}
	size := s.unconfirmed.largest()
	if limit := c.sizes.lost(broker, size, time.Now()); limit > 0 {
		c.Logger.Warn("mqtt broker takes no packets as large as this one, they are set aside from now on", "broker", broker, "bytes", limit)
	}
	if size < suspectSize {
		return err
	}
	return &packetError{size, err}
}

// packetError is the end of a connection that a packet may have caused.
type packetError struct {
	size int
	err  error
}

func (e *packetError) Error() string {
	return fmt.Sprintf("broker closed the connection with a packet of %d bytes on its way: %v", e.size, e.err)
}

func (e *packetError) Unwrap() error { return e.err }

// closedByBroker reports whether the other side ended a connection, and not the network or this one.
func closedByBroker(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
