package mqtt

import (
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
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

// append appends the fields of the stats payload's object mqtt.
func (h *Health) append(buf []byte, now time.Time) []byte {
	connected := time.Duration(0)
	if h.Connection.Connected {
		connected = max(0, now.Sub(h.Connection.Since))
	}
	buf = appendAccount(append(buf, `"detections":`...), &h.Accounting.Detections)
	buf = appendAccount(append(buf, `,"state":`...), &h.Accounting.State)
	buf = appendAccount(append(buf, `,"events":`...), &h.Accounting.Events)
	for _, field := range [...]struct {
		key   string
		value float64
	}{
		{`,"connected_s":`, connected.Seconds()},
		{`,"connects":`, float64(h.Connects)},
		{`,"largest_packet":`, float64(h.Largest)},
		{`,"too_large":`, float64(h.Oversize.Messages)},
		{`,"repeats":`, float64(h.Repeats)},
		{`,"spool_bytes":`, float64(h.Events.Bytes)},
		{`,"spool_oldest_s":`, h.Events.Oldest.Seconds()},
		{`,"spool_failures":`, float64(h.Events.Failures)},
		{`,"spool_lost":`, float64(h.Events.Lost)},
	} {
		buf = payload.AppendDecimal(append(buf, field.key...), field.value)
	}
	return buf
}

func appendAccount(buf []byte, a *ledger.Account) []byte {
	buf = append(buf, `{"offered":`...)
	buf = strconv.AppendUint(buf, a.Offered, 10)
	buf = append(buf, `,"delivered":`...)
	buf = strconv.AppendUint(buf, a.Delivered, 10)
	buf = append(buf, `,"superseded":`...)
	buf = strconv.AppendUint(buf, a.Superseded, 10)
	buf = append(buf, `,"dropped":`...)
	buf = strconv.AppendUint(buf, a.Dropped, 10)
	buf = append(buf, `,"queued":`...)
	buf = strconv.AppendUint(buf, a.Queued, 10)
	return append(buf, '}')
}

// appendOversize appends the status payload's field too_large if messages were discarded.
func appendOversize(buf []byte, o *Oversize) []byte {
	if o.Messages == 0 {
		return buf
	}
	buf = append(buf, `,"too_large":{"messages":`...)
	buf = strconv.AppendUint(buf, o.Messages, 10)
	buf = append(buf, `,"topic":`...)
	buf = payload.AppendString(buf, o.Topic)
	buf = append(buf, `,"bytes":`...)
	buf = strconv.AppendInt(buf, int64(o.Bytes), 10)
	buf = append(buf, `,"limit":`...)
	buf = strconv.AppendInt(buf, int64(o.Limit-1), 10)
	return append(buf, '}')
}
