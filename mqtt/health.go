package mqtt

import (
	"time"

	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// Health is a snapshot of the client's counters for metrics. It contains no secrets.
type Health struct {
	Connection Connection
	Accounting Accounting
	Connects   uint64 // connections that came up, since Open
	Repeats    uint64 // events that were sent more than once, because their acknowledgement was lost with a connection
	Largest    int    // bytes of the largest packet that a broker has taken
	Oversize   Oversize
	Events     spool.Stats
}

// Health returns a snapshot of the client's counters.
func (c *Client) Health() Health {
	h := Health{Connection: c.Connection(), Accounting: c.Accounting(), Events: c.events.Stats()}
	h.Largest, h.Oversize = c.sizes.Read()
	c.Link.mu.Lock()
	h.Connects, h.Repeats = c.connects, c.repeats
	c.Link.mu.Unlock()
	return h
}

// healthMessage is the object mqtt of the stats payload.
type healthMessage struct {
	Accounting
	Connected     payload.Decimal `json:"connected_s"`
	Connects      uint64          `json:"connects"`
	Largest       int             `json:"largest_packet"`
	TooLarge      uint64          `json:"too_large"`
	Repeats       uint64          `json:"repeats"`
	SpoolBytes    int64           `json:"spool_bytes"`
	SpoolOldest   payload.Decimal `json:"spool_oldest_s"`
	SpoolFailures uint64          `json:"spool_failures"`
	SpoolLost     uint64          `json:"spool_lost"`
}

func (h *Health) message(now time.Time) *healthMessage {
	m := &healthMessage{
		Accounting: h.Accounting, Connects: h.Connects, Largest: h.Largest, TooLarge: h.Oversize.Messages, Repeats: h.Repeats,
		SpoolBytes: h.Events.Bytes, SpoolOldest: payload.Decimal(h.Events.Oldest.Seconds()),
		SpoolFailures: h.Events.Failures, SpoolLost: h.Events.Lost,
	}
	if h.Connection.Connected {
		m.Connected = payload.Decimal(max(0, now.Sub(h.Connection.Since).Seconds()))
	}
	return m
}

// message returns the object too_large of the status payload, nil if no message was discarded.
func (o Oversize) message() any {
	if o.Messages == 0 {
		return nil
	}
	o.Limit-- // the largest that is sent
	return o
}
