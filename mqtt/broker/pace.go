package broker

import (
	"errors"
	"net"
	"sync"
	"time"
)

// pace bounds the work per second that clients cause, in bytes. Each address has an equal share; the clients of an address that exceeds it
// wait in turn, which stops reading from their connections. The clients of this process never wait.
type pace struct {
	rate   int64 // bytes per second, of all addresses
	refuse func(g *guard, reason error)

	mu      sync.Mutex
	next    map[string]time.Time // when an address has used up its share; entries in the past are removed
	delayed uint64               // waits
}

const (
	// paceBurst is how much traffic, as time at its rate, an address may send at once.
	paceBurst = 100 * time.Millisecond
	// longestPace is the longest wait, and the most that one message costs. A connection that would have to wait longer is closed.
	longestPace = 10 * time.Second

	// The cost of work besides copying a message, in bytes: a login, a comparison of a topic with a filter, and any other packet.
	loginCost  = 16 << 10
	matchCost  = 64
	packetCost = 256

	// packetsPerWait is the number of such packets of a connection after which it may have to wait.
	packetsPerWait = 16
)

var errPace = errors.New("its address causes more work than its share")

func newPace(rate int64, refuse func(*guard, error)) *pace {
	return &pace{rate: rate, refuse: refuse, next: map[string]time.Time{}}
}

// wait counts bytes for the address of a connection and waits until they are within its share or the connection is closed.
func (p *pace) wait(conn net.Conn, bytes int64) {
	g, ok := conn.(*guard)
	if !ok || g.own.Load() {
		return
	}
	wait := p.reserve(g.host, bytes, time.Now())
	if wait <= 0 {
		return
	}
	if wait > longestPace {
		p.refuse(g, errPace)
		_ = g.Close() // nothing is expected of it any more
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.done:
	}
}

// reserve counts bytes for an address and returns how long its client has to wait. It does not count those of a client that would have to
// wait too long.
func (p *pace) reserve(host string, bytes int64, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other, at := range p.next {
		if !at.After(now) {
			delete(p.next, other)
		}
	}
	start, busy := p.next[host]
	if !busy {
		start = now
		p.next[host] = now
	}
	share := float64(p.rate) / float64(len(p.next))
	wait := start.Sub(now) - paceBurst
	if wait > 0 {
		p.delayed++
	}
	if wait <= longestPace {
		seconds := min(float64(bytes)/share, longestPace.Seconds())
		p.next[host] = start.Add(time.Duration(seconds * float64(time.Second)))
	}
	return wait
}

// waits returns how often clients waited.
func (p *pace) waits() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delayed
}
