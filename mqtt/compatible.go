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

// FrigateActive publishes the number of moving objects of a label in a zone or, if zone is empty, in the whole image, QoS 1 and retained.
// The label
// topic.Total is the total; the others are those of topic.CountLabel.
func (o *outbox) FrigateActive(camera, zone, label string, n int) {
	key := topicKey{kind: kindFrigateActive, camera: camera, label: label}
	if zone != "" {
		key.kind, key.name = kindFrigateZoneActive, zone
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change(key, strconv.Itoa(n))
}

// frigateStats publishes Stats in Frigate's format, QoS 0.
func (o *outbox) frigateStats(stats *payload.Stats, now time.Time) {
	o.mailbox(topicKey{kind: kindFrigateStats}).Put(func(buf []byte) []byte { return stats.AppendFrigate(buf, now) })
}

// DeepStreamFrame publishes the payload of one frame in DeepStream's minimal schema, QoS 0, newest of each camera wins. It copies the
// bytes, never blocks, and allocates nothing once the camera is known.
func (o *outbox) DeepStreamFrame(camera string, json []byte) {
	if s := o.mailbox(topicKey{kind: kindDeepStream, camera: camera}); s != nil {
		s.PutBytes(json)
	}
}
