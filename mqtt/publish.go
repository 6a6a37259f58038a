package mqtt

import (
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// topicKey identifies a mailbox without building its topic.
type topicKey struct {
	kind                kind
	camera, name, label string
}

type kind uint8

const (
	kindDetections kind = iota
	kindStats
	kindStatus
	kindMachine
	kindCount
	kindZone
	kindLine
	kindLineLabel
	kindSnapshot
	kindRequestedSnapshot
	kindSetting
	kindError
	kindDiscovery
	kindAvailable
	kindImage
	kindDeepStream
	kindFrigateCount
	kindFrigateZone
	kindFrigateSnapshot
	kindFrigateActive
	kindFrigateZoneActive
	kindFrigateStats
	kindFrigateStatus
	kindFrigateSetting
)

// feed is what a camera publishes per frame. Feeds are searched linearly: with cold caches, hashing would be half of the cost of a
// hand-off.
type feed struct {
	camera     string
	detections *mailbox
	events     string // topic
}

// feed returns the feed of a camera, creating it if necessary.
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
	f := feed{camera: camera, detections: c.mailbox(topicKey{kind: kindDetections, camera: camera}), events: c.topics.Events(camera)}
	if f.detections != nil {
		c.mu.Lock()
		c.feeds = append(c.feeds, f)
		c.mu.Unlock()
	}
	return f
}

// Detections publishes the payload of one frame's detections, QoS 0, newest wins. It copies the bytes, never blocks, and allocates nothing
// once the camera is known.
func (c *Client) Detections(camera string, json []byte) {
	if s := c.feed(camera).detections; s != nil {
		s.PutBytes(json)
	}
}

// Event queues an event for delivery in order and at least once, QoS 1, and returns its id. The id is in the payload and stays the same
// when the event is sent again. It never blocks on the disk or the network.
func (c *Client) Event(e *payload.Event) string {
	number := c.events.Offer(c.feed(e.Camera).events, func(buf []byte, number uint64) []byte {
		return e.AppendJSON(buf, c.Device, c.run, number)
	})
	return c.run + "-" + strconv.FormatUint(number, 10)
}

// Stats publishes the statistics of the last interval with this client's accounting, QoS 0.
func (c *Client) Stats(stats *payload.Stats) {
	health := c.Health()
	now := time.Now()
	c.mailbox(topicKey{kind: kindStats}).Put(func(buf []byte) []byte {
		return stats.AppendJSON(buf, c.Device, now, func(buf []byte) []byte { return health.append(buf, now) })
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
		return status.AppendJSON(buf, c.Device, now, func(buf []byte) []byte { return appendOversize(buf, &oversize) })
	})
}

// isCounted reports whether CountInterval applies to messages of this kind.
func (k kind) isCounted() bool {
	switch k {
	case kindLine, kindLineLabel, kindSnapshot, kindFrigateSnapshot:
		return true
	}
	return k.isCurrentCount()
}

// dueAt returns the time up to which messages are due: now, or at the end of a session later, because what waits for its interval is sent
// then or never.
func (c *Client) dueAt(now time.Time, ending <-chan struct{}) time.Time {
	if isClosed(ending) {
		return now.Add(c.CountInterval)
	}
	return now
}

// Count publishes the number of objects of a label in the image, QoS 1 and retained. The label
// topic.Total is the total; the others are those of topic.CountLabel.
func (c *Client) Count(camera, label string, n int) {
	c.number(topicKey{kind: kindCount, camera: camera, label: label}, n)
	if c.Frigate != "" {
		c.number(topicKey{kind: kindFrigateCount, camera: camera, label: label}, n)
	}
}

// Zone publishes the number of objects of a label in a zone, QoS 1 and retained. The label
// topic.Total is the total; the others are those of topic.CountLabel.
func (c *Client) Zone(camera, zone, label string, n int) {
	c.number(topicKey{kind: kindZone, camera: camera, name: zone, label: label}, n)
	if c.Frigate != "" {
		c.number(topicKey{kind: kindFrigateZone, camera: camera, name: zone, label: label}, n)
	}
}

func (c *Client) number(key topicKey, n int) {
	if s := c.mailbox(key); s != nil {
		s.PutNumber(n)
	}
}

// Line publishes the number of crossings of a line in each direction, QoS 1 and retained.
func (c *Client) Line(camera, line string, in, out int) {
	c.crossings(topicKey{kind: kindLine, camera: camera, name: line}, in, out)
}

// LineLabel publishes the number of crossings of a line by one label in each direction, QoS 1 and retained.
func (c *Client) LineLabel(camera, line, label string, in, out int) {
	c.crossings(topicKey{kind: kindLineLabel, camera: camera, name: line, label: label}, in, out)
}

func (c *Client) crossings(key topicKey, in, out int) {
	if s := c.mailbox(key); s != nil {
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
func (c *Client) Snapshot(camera, label string, jpeg []byte) {
	c.image(topicKey{kind: kindSnapshot, camera: camera, label: label}, jpeg)
	if c.Frigate != "" {
		c.image(topicKey{kind: kindFrigateSnapshot, camera: camera, label: label}, jpeg)
	}
}

// RequestedSnapshot publishes the JPEG of a camera's scene that a command asked for, QoS 0 and retained. The JPEG is copied.
func (c *Client) RequestedSnapshot(camera string, jpeg []byte) {
	c.image(topicKey{kind: kindRequestedSnapshot, camera: camera}, jpeg)
}

// Image publishes the JPEG of a camera's scene, QoS 0 and retained. The JPEG is copied.
func (c *Client) Image(camera string, jpeg []byte) {
	c.image(topicKey{kind: kindImage, camera: camera}, jpeg)
}

func (c *Client) image(key topicKey, jpeg []byte) {
	if s := c.mailbox(key); s != nil {
		s.Put(func(buf []byte) []byte { return append(buf, jpeg...) })
	}
}

// Available publishes whether a camera delivers images, QoS 1 and retained. When it stops, the counts of the camera and its zones are set
// to 0; line crossings keep their values. Unchanged values are not published again.
func (c *Client) Available(camera string, available bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value := topic.Offline
	if available {
		value = topic.Online
	}
	c.change(topicKey{kind: kindAvailable, camera: camera}, value)
	if c.Frigate != "" {
		c.change(topicKey{kind: kindFrigateStatus, camera: camera}, value)
	}
	if available {
		return
	}
	for key, s := range c.mailboxes {
		if key.camera == camera && key.kind.isCurrentCount() && !s.Cleared {
			c.change(key, "0")
		}
	}
}

// change publishes a value if it differs from the previous one. The caller holds mu.
func (c *Client) change(key topicKey, value string) {
	if s := c.mailboxLocked(key); s != nil && !s.Holds(value) {
		s.PutUrgent(value)
	}
}

// mailbox returns the mailbox of a topic, creating it if necessary, or nil if topicLimit is reached.
func (c *Client) mailbox(key topicKey) *mailbox {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mailboxLocked(key)
}

// mailboxLocked is mailbox for who holds the lock.
func (c *Client) mailboxLocked(key topicKey) *mailbox {
	if s := c.mailboxes[key]; s != nil {
		s.Cleared = false
		return s
	}
	if len(c.mailboxes) >= topicLimit && key.camera != "" {
		c.state.Offer(1)
		c.state.Drop(1)
		return nil
	}
	s := &mailbox{Queue: c.qos1, Ledger: &c.state, Retain: true}
	switch key.kind {
	case kindDetections:
		*s = mailbox{Topic: c.topics.Detections(key.camera), Queue: c.qos0, Ledger: &c.detections, Interval: c.DetectionsInterval}
	case kindStats:
		*s = mailbox{Topic: c.topics.Stats(), Queue: c.qos0, Ledger: &c.detections}
	case kindStatus:
		s.Topic = c.topics.Status()
	case kindMachine:
		s.Topic = c.topics.Machine()
	case kindAvailable:
		s.Topic = c.topics.CameraAvailable(key.camera)
	case kindCount:
		s.Topic = c.topics.Count(key.camera, key.label)
	case kindZone:
		s.Topic = c.topics.Zone(key.camera, key.name, key.label)
	case kindLine:
		s.Topic = c.topics.Line(key.camera, key.name)
	case kindLineLabel:
		s.Topic = c.topics.LineLabel(key.camera, key.name, key.label)
	case kindSetting:
		s.Topic = c.topics.State(key.camera, key.name)
	case kindError:
		s.Topic, s.Retain = c.topics.Error(), false
	case kindDiscovery:
		s.Topic, s.Discovery = key.name, true
	case kindDeepStream:
		*s = mailbox{Topic: c.DeepStream, Queue: c.qos0, Ledger: &c.detections, Interval: c.DetectionsInterval}
	case kindFrigateCount:
		s.Topic = c.Frigate.Count(key.camera, key.label)
	case kindFrigateZone:
		s.Topic = c.Frigate.Count(key.name, key.label)
	case kindFrigateActive:
		s.Topic = c.Frigate.Active(key.camera, key.label)
	case kindFrigateZoneActive:
		s.Topic = c.Frigate.Active(key.name, key.label)
	case kindFrigateStatus:
		s.Topic = c.Frigate.Status(key.camera)
	case kindFrigateSetting:
		s.Topic = c.Frigate.State(key.camera, key.name)
	case kindFrigateStats:
		*s = mailbox{Topic: c.Frigate.Stats(), Queue: c.qos0, Ledger: &c.detections}
	case kindFrigateSnapshot:
		s.Topic, s.Queue = c.Frigate.Snapshot(key.camera, key.label), c.qos0
	case kindImage:
		s.Topic, s.Queue = c.topics.Image(key.camera), c.qos0
	case kindSnapshot:
		s.Topic, s.Queue = c.topics.Snapshot(key.camera, key.label), c.qos0
	case kindRequestedSnapshot:
		s.Topic, s.Queue = c.topics.RequestedSnapshot(key.camera), c.qos0
	}
	if key.kind.isCounted() {
		s.Interval = c.CountInterval
	}
	c.mailboxes[key] = s
	c.order = append(c.order, s)
	return s
}

// retained returns the mailboxes whose last message is repeated on a new connection.
func (c *Client) retained() []*mailbox {
	c.mu.Lock()
	defer c.mu.Unlock()
	var mailboxes []*mailbox
	for _, s := range c.order {
		if s.Retain {
			mailboxes = append(mailboxes, s)
		}
	}
	return mailboxes
}
