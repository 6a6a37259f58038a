package mqtt

import (
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// isCurrentCount reports whether values of this kind are 0 while the camera delivers no images.
func (k kind) isCurrentCount() bool {
	switch k {
	case kindCount, kindZone, kindFrigateCount, kindFrigateZone, kindFrigateActive, kindFrigateZoneActive:
		return true
	}
	return false
}

// FrigateEvent queues an event for <Frigate>/events, in the same queue and with the same guarantees as Event.
func (c *Client) FrigateEvent(kind string, before, after *payload.Tracked) {
	c.events.Offer(c.Frigate.Events(), func(buf []byte, _ uint64) []byte { return payload.AppendFrigate(buf, kind, before, after) })
}

// FrigateActive publishes the number of moving objects of a label in a zone or, if zone is empty, in the whole image, QoS 1 and retained.
// The label
// topic.Total is the total; the others are those of topic.CountLabel.
func (c *Client) FrigateActive(camera, zone, label string, n int) {
	key := topicKey{kind: kindFrigateActive, camera: camera, label: label}
	if zone != "" {
		key.kind, key.name = kindFrigateZoneActive, zone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(key, strconv.Itoa(n))
}

// frigateStats publishes Stats in Frigate's format, QoS 0.
func (c *Client) frigateStats(stats *payload.Stats, now time.Time) {
	c.mailbox(topicKey{kind: kindFrigateStats}).Put(func(buf []byte) []byte { return stats.AppendFrigate(buf, now) })
}

// DeepStreamFrame publishes the payload of one frame in DeepStream's minimal schema, QoS 0, newest of each camera wins. It copies the
// bytes, never blocks, and allocates nothing once the camera is known.
func (c *Client) DeepStreamFrame(camera string, json []byte) {
	if s := c.mailbox(topicKey{kind: kindDeepStream, camera: camera}); s != nil {
		s.PutBytes(json)
	}
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
