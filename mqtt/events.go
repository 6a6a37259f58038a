package mqtt

import (
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Event queues an event for delivery in order and at least once, QoS 1, and returns its id. The id is in the payload and stays the same
// when the event is sent again. It never blocks on the disk or the network.
func (c *Client) Event(e *payload.Event) string {
	number := c.events.Offer(c.feed(e.Camera).events, func(buf []byte, number uint64) []byte {
		return e.AppendJSON(buf, c.Device, c.run, number)
	})
	if e.ID != "" {
		return e.ID
	}
	return c.run + "-" + strconv.FormatUint(number, 10)
}

// SyncEvents returns when the events that were queued are on disk or delivered.
func (c *Client) SyncEvents() error { return c.events.Sync() }

// Stats publishes the statistics of the last interval with this client's accounting, QoS 0.
func (c *Client) Stats(stats *payload.Stats) {
	health := c.Health()
	now := time.Now()
	c.mailbox(topicKey{kind: kindStats}).Put(func(buf []byte) []byte {
		return stats.AppendJSON(buf, c.Device, now, health.message(now))
	})
	if c.Frigate != "" {
		c.frigateStats(stats, now)
	}
}

// Status publishes the status of the daemon, QoS 1 and retained.
func (c *Client) Status(status *payload.Status) {
	now := time.Now()
	_, oversize := c.sizes.Read()
	c.mailbox(topicKey{kind: kindStatus}).Put(func(buf []byte) []byte {
		return status.AppendJSON(buf, c.Device, now, oversize.message())
	})
}

// FrigateEvent queues an event for <Frigate>/events, in the same queue and with the same guarantees as Event.
func (c *Client) FrigateEvent(kind string, before, after *payload.Tracked) {
	c.events.Offer(c.Frigate.Events(), func(buf []byte, _ uint64) []byte { return payload.AppendFrigate(buf, kind, before, after) })
}

// DeepStreamEvent queues an event in DeepStream's full schema, in the same queue as Event. id is the result of Event. Event types without a
// DeepStream equivalent are skipped.
func (c *Client) DeepStreamEvent(e *payload.Event, id string, by *payload.AnalyticsModule) {
	if payload.DeepStreamType(e) == "" {
		return
	}
	c.events.Offer(c.DeepStream, func(buf []byte, number uint64) []byte {
		return e.AppendDeepStream(buf, c.Device, c.run+"-"+strconv.FormatUint(number, 10), id, by)
	})
}
