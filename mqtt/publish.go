package mqtt

import (
	"strconv"
	"time"
)

// slotKey finds a slot without building its topic.
type slotKey struct {
	kind                kind
	camera, name, label string
}

type kind uint8

const (
	kindDetections kind = iota
	kindStats
	kindStatus
	kindCount
	kindZone
	kindLine
	kindLineLabel
	kindSnapshot
	kindSetting
	kindError
	kindDiscovery
)

// feed is what a camera publishes per frame, found without a map: its hashing would be half of what a hand-off costs with cold caches.
type feed struct {
	camera     string
	detections *slot
	events     string // topic
}

// feed finds or makes the feed of a camera.
func (c *Client) feed(camera string) feed {
	c.mu.Lock()
	for i := range c.feeds {
		if c.feeds[i].camera == camera {
			f := c.feeds[i]
			c.mu.Unlock()
			return f
		}
	}
	c.mu.Unlock()
	f := feed{camera: camera, detections: c.slot(slotKey{kind: kindDetections, camera: camera}), events: c.topics.Events(camera)}
	if f.detections != nil {
		c.mu.Lock()
		c.feeds = append(c.feeds, f)
		c.mu.Unlock()
	}
	return f
}

// Detections publishes one frame's detections, QoS 0, newest wins. It copies them, never blocks, and allocates nothing once the camera is
// known.
func (c *Client) Detections(d *Detections) {
	if s := c.feed(d.Camera).detections; s != nil {
		s.putDetections(d, c.Device)
	}
}

// Stats publishes the figures of the last interval with the accounting of this client, QoS 0.
func (c *Client) Stats(stats *Stats) {
	accounting := c.Accounting()
	now := time.Now()
	c.slot(slotKey{kind: kindStats}).put(func(buf []byte) []byte { return stats.AppendJSON(buf, c.Device, now, &accounting) })
}

// Status publishes what runs, QoS 1 and retained.
func (c *Client) Status(status *Status) {
	now := time.Now()
	c.slot(slotKey{kind: kindStatus}).put(func(buf []byte) []byte { return status.AppendJSON(buf, c.Device, now) })
}

// Count publishes how many objects of a label the camera sees, QoS 1 and retained. The label "all" is the total.
func (c *Client) Count(camera, label string, n int) {
	c.number(slotKey{kind: kindCount, camera: camera, label: label}, n)
}

// Zone publishes how many objects of a label are in a zone, QoS 1 and retained. The label "all" is the total.
func (c *Client) Zone(camera, zone, label string, n int) {
	c.number(slotKey{kind: kindZone, camera: camera, name: zone, label: label}, n)
}

func (c *Client) number(key slotKey, n int) {
	if s := c.slot(key); s != nil {
		s.put(func(buf []byte) []byte { return strconv.AppendInt(buf, int64(n), 10) })
	}
}

// Line publishes how many objects have crossed a line in each direction, QoS 1 and retained.
func (c *Client) Line(camera, line string, in, out int) {
	c.crossings(slotKey{kind: kindLine, camera: camera, name: line}, in, out)
}

// LineLabel publishes how many objects of one label have crossed a line in each direction, QoS 1 and retained.
func (c *Client) LineLabel(camera, line, label string, in, out int) {
	c.crossings(slotKey{kind: kindLineLabel, camera: camera, name: line, label: label}, in, out)
}

func (c *Client) crossings(key slotKey, in, out int) {
	if s := c.slot(key); s != nil {
		s.put(func(buf []byte) []byte {
			buf = append(buf, `{"in":`...)
			buf = strconv.AppendInt(buf, int64(in), 10)
			buf = append(buf, `,"out":`...)
			buf = strconv.AppendInt(buf, int64(out), 10)
			return append(buf, '}')
		})
	}
}

// Snapshot publishes a JPEG of the newest object of a label, QoS 0 and retained. The picture is copied.
func (c *Client) Snapshot(camera, label string, jpeg []byte) {
	if s := c.slot(slotKey{kind: kindSnapshot, camera: camera, label: label}); s != nil {
		s.put(func(buf []byte) []byte { return append(buf, jpeg...) })
	}
}

// slot finds or makes the slot of a topic; nil when there are too many topics.
func (c *Client) slot(key slotKey) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(key)
}

// find is slot for who holds the lock.
func (c *Client) find(key slotKey) *slot {
	if s := c.slots[key]; s != nil {
		s.withdrawn = false
		return s
	}
	if len(c.slots) >= slotLimit && key.camera != "" {
		c.state.offer(1)
		c.state.drop(1)
		return nil
	}
	s := &slot{lane: c.reliable, ledger: &c.state, retain: true}
	switch key.kind {
	case kindDetections:
		*s = slot{topic: c.topics.Detections(key.camera), lane: c.latest, ledger: &c.detections, interval: c.DetectionsInterval}
	case kindStats:
		*s = slot{topic: c.topics.Stats(), lane: c.latest, ledger: &c.detections}
	case kindStatus:
		s.topic = c.topics.Status()
	case kindCount:
		s.topic = c.topics.Count(key.camera, key.label)
	case kindZone:
		s.topic = c.topics.Zone(key.camera, key.name, key.label)
	case kindLine:
		s.topic = c.topics.Line(key.camera, key.name)
	case kindLineLabel:
		s.topic = c.topics.LineLabel(key.camera, key.name, key.label)
	case kindSetting:
		s.topic = c.topics.State(key.camera, key.name)
	case kindError:
		s.topic, s.retain = c.topics.Error(), false
	case kindDiscovery:
		s.topic = c.discoveryTopic()
	case kindSnapshot:
		s.topic, s.lane = c.topics.Snapshot(key.camera, key.label), c.latest
	}
	c.slots[key] = s
	c.order = append(c.order, s)
	return s
}

// retained lists the slots whose last message a new connection repeats.
func (c *Client) retained() []*slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	var slots []*slot
	for _, s := range c.order {
		if s.retain {
			slots = append(slots, s)
		}
	}
	return slots
}
