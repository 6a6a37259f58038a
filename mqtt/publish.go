package mqtt

import (
	"strconv"

	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// feed is what a camera publishes per frame. Feeds are searched linearly: with cold caches, hashing would be half of the cost of a
// hand-off.
type feed struct {
	camera     string
	detections *mailbox
	events     string // topic
}

// feed returns the feed of a camera, creating it if necessary.
func (o *outbox) feed(camera string) feed {
	o.mu.Lock()
	for i := range o.feeds {
		if o.feeds[i].camera == camera {
			f := o.feeds[i]
			o.mu.Unlock()
			return f
		}
	}
	o.mu.Unlock()
	f := feed{camera: camera, detections: o.mailbox(topicKey{kind: kindDetections, camera: camera}), events: o.topics.Events(camera)}
	if f.detections != nil {
		o.mu.Lock()
		o.feeds = append(o.feeds, f)
		o.mu.Unlock()
	}
	return f
}

// Detections publishes the payload of one frame's detections, QoS 0, newest wins. It copies the bytes, never blocks, and allocates nothing
// once the camera is known.
func (o *outbox) Detections(camera string, json []byte) {
	if s := o.feed(camera).detections; s != nil {
		s.PutBytes(json)
	}
}

// Count publishes the number of objects of a label in the image, QoS 1 and retained. The label
// topic.Total is the total; the others are those of topic.CountLabel.
func (o *outbox) Count(camera, label string, n int) {
	o.number(topicKey{kind: kindCount, camera: camera, label: label}, n)
	if o.frigate != "" {
		o.number(topicKey{kind: kindFrigateCount, camera: camera, label: label}, n)
	}
}

// Zone publishes the number of objects of a label in a zone, QoS 1 and retained. The label
// topic.Total is the total; the others are those of topic.CountLabel.
func (o *outbox) Zone(camera, zone, label string, n int) {
	o.number(topicKey{kind: kindZone, camera: camera, name: zone, label: label}, n)
	if o.frigate != "" {
		o.number(topicKey{kind: kindFrigateZone, camera: camera, name: zone, label: label}, n)
	}
}

func (o *outbox) number(key topicKey, n int) {
	if s := o.mailbox(key); s != nil {
		s.PutNumber(n)
	}
}

// Line publishes the number of crossings of a line in each direction, QoS 1 and retained.
func (o *outbox) Line(camera, line string, in, out int) {
	o.crossings(topicKey{kind: kindLine, camera: camera, name: line}, in, out)
}

// LineLabel publishes the number of crossings of a line by one label in each direction, QoS 1 and retained.
func (o *outbox) LineLabel(camera, line, label string, in, out int) {
	o.crossings(topicKey{kind: kindLineLabel, camera: camera, name: line, label: label}, in, out)
}

func (o *outbox) crossings(key topicKey, in, out int) {
	if s := o.mailbox(key); s != nil {
		s.Put(func(buf []byte) []byte {
			buf = append(buf, `{"in":`...)
			buf = strconv.AppendInt(buf, int64(in), 10)
			buf = append(buf, `,"out":`...)
			buf = strconv.AppendInt(buf, int64(out), 10)
			return append(buf, '}')
		})
	}
}

// Snapshot publishes the JPEG of an object on the snapshot topic of its label, QoS 0 and retained. The JPEG is copied.
func (o *outbox) Snapshot(camera, label string, jpeg []byte) {
	o.image(topicKey{kind: kindSnapshot, camera: camera, label: label}, jpeg)
	if o.frigate != "" {
		o.image(topicKey{kind: kindFrigateSnapshot, camera: camera, label: label}, jpeg)
	}
}

// RequestedSnapshot publishes the JPEG of a camera's scene that a command asked for, QoS 0 and retained. The JPEG is copied.
func (o *outbox) RequestedSnapshot(camera string, jpeg []byte) {
	o.image(topicKey{kind: kindRequestedSnapshot, camera: camera}, jpeg)
}

// Image publishes the JPEG of a camera's scene, QoS 0 and retained. The JPEG is copied.
func (o *outbox) Image(camera string, jpeg []byte) {
	o.image(topicKey{kind: kindImage, camera: camera}, jpeg)
}

func (o *outbox) image(key topicKey, jpeg []byte) {
	if s := o.mailbox(key); s != nil {
		s.Put(func(buf []byte) []byte { return append(buf, jpeg...) })
	}
}

// Available publishes whether a camera delivers images, QoS 1 and retained. When it stops, the counts of the camera and its zones are set
// to 0; line crossings keep their values. Unchanged values are not published again.
func (o *outbox) Available(camera string, available bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	value := topic.Offline
	if available {
		value = topic.Online
	}
	o.change(topicKey{kind: kindAvailable, camera: camera}, value)
	if o.frigate != "" {
		o.change(topicKey{kind: kindFrigateStatus, camera: camera}, value)
	}
	if available {
		return
	}
	for key, s := range o.mailboxes {
		if key.camera == camera && key.kind.isCurrentCount() && !s.Cleared {
			o.change(key, "0")
		}
	}
}
