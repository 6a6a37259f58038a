package mqtt

import "github.com/edge-infer/edge-infer/mqtt/payload"

// ofNow reports whether a number of that kind is 0 while there are no pictures.
func (k kind) ofNow() bool {
	return k == kindCount || k == kindZone || k == kindFrigateCount || k == kindFrigateZone
}

// FrigateEvent queues an event for <Frigate>/events, in the same queue as Event and delivered as those are: in order and at least once.
func (c *Client) FrigateEvent(kind string, before, after *payload.Tracked) {
	c.events.Offer(c.Frigate+"/events", func(buf []byte, _ uint64) []byte { return payload.AppendFrigate(buf, kind, before, after) })
}

// DeepStreamFrame publishes the payload of one frame in DeepStream's schema, QoS 0, newest of each camera wins. It copies the bytes, never
// blocks, and allocates nothing once the camera is known.
func (c *Client) DeepStreamFrame(camera string, json []byte) {
	if s := c.mailbox(topicKey{kind: kindDeepStream, camera: camera}); s != nil {
		s.putBytes(json)
	}
}
