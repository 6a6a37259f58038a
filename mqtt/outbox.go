package mqtt

import (
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// outbox holds the newest message of each topic of a device, for the senders of a Link. It knows the topics of every message.
type outbox struct {
	// Set by Open; see the fields of Client and Link.
	topics             topic.Tree
	frigate            topic.Frigate
	deepStream         string
	detectionsInterval time.Duration
	countInterval      time.Duration
	link               *Link // whose queues and accounts

	mu        sync.Mutex
	feeds     []feed // of the cameras
	mailboxes map[topicKey]*mailbox
	order     []*mailbox // in the order of their making
}

// topicLimit bounds the number of topics with newest-wins messages.
const topicLimit = 8192

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
	kindJob
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
func (o *outbox) dueAt(now time.Time, ending <-chan struct{}) time.Time {
	if isClosed(ending) {
		return now.Add(o.countInterval)
	}
	return now
}

// change publishes a value if it differs from the previous one. The caller holds mu.
func (o *outbox) change(key topicKey, value string) {
	if s := o.mailboxLocked(key); s != nil && !s.Holds(value) {
		s.PutUrgent(value)
	}
}

// mailbox returns the mailbox of a topic, creating it if necessary, or nil if topicLimit is reached.
func (o *outbox) mailbox(key topicKey) *mailbox {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mailboxLocked(key)
}

// mailboxLocked is mailbox for who holds the lock.
func (o *outbox) mailboxLocked(key topicKey) *mailbox {
	if s := o.mailboxes[key]; s != nil {
		s.Cleared = false
		return s
	}
	if len(o.mailboxes) >= topicLimit && key.camera != "" {
		o.link.accounts.state.Offer(1)
		o.link.accounts.state.Drop(1)
		return nil
	}
	detections := &o.link.accounts.detections
	s := &mailbox{Queue: o.link.qos1, Ledger: &o.link.accounts.state, Retain: true}
	switch key.kind {
	case kindDetections:
		*s = mailbox{Topic: o.topics.Detections(key.camera), Queue: o.link.qos0, Ledger: detections, Interval: o.detectionsInterval}
	case kindStats:
		*s = mailbox{Topic: o.topics.Stats(), Queue: o.link.qos0, Ledger: detections}
	case kindStatus:
		s.Topic = o.topics.Status()
	case kindMachine:
		s.Topic = o.topics.Machine()
	case kindAvailable:
		s.Topic = o.topics.CameraAvailable(key.camera)
	case kindCount:
		s.Topic = o.topics.Count(key.camera, key.label)
	case kindZone:
		s.Topic = o.topics.Zone(key.camera, key.name, key.label)
	case kindLine:
		s.Topic = o.topics.Line(key.camera, key.name)
	case kindLineLabel:
		s.Topic = o.topics.LineLabel(key.camera, key.name, key.label)
	case kindSetting:
		s.Topic = o.topics.State(key.camera, key.name)
	case kindError:
		s.Topic, s.Retain = o.topics.Error(), false
	case kindJob:
		s.Topic = o.topics.Job(key.name)
	case kindDiscovery:
		s.Topic, s.Discovery = key.name, true
	case kindDeepStream:
		*s = mailbox{Topic: o.deepStream, Queue: o.link.qos0, Ledger: detections, Interval: o.detectionsInterval}
	case kindFrigateCount:
		s.Topic = o.frigate.Count(key.camera, key.label)
	case kindFrigateZone:
		s.Topic = o.frigate.Count(key.name, key.label)
	case kindFrigateActive:
		s.Topic = o.frigate.Active(key.camera, key.label)
	case kindFrigateZoneActive:
		s.Topic = o.frigate.Active(key.name, key.label)
	case kindFrigateStatus:
		s.Topic = o.frigate.Status(key.camera)
	case kindFrigateSetting:
		s.Topic = o.frigate.State(key.camera, key.name)
	case kindFrigateStats:
		*s = mailbox{Topic: o.frigate.Stats(), Queue: o.link.qos0, Ledger: detections}
	case kindFrigateSnapshot:
		s.Topic, s.Queue = o.frigate.Snapshot(key.camera, key.label), o.link.qos0
	case kindImage:
		s.Topic, s.Queue = o.topics.Image(key.camera), o.link.qos0
	case kindSnapshot:
		s.Topic, s.Queue = o.topics.Snapshot(key.camera, key.label), o.link.qos0
	case kindRequestedSnapshot:
		s.Topic, s.Queue = o.topics.RequestedSnapshot(key.camera), o.link.qos0
	}
	if key.kind.isCounted() {
		s.Interval = o.countInterval
	}
	o.mailboxes[key] = s
	o.order = append(o.order, s)
	return s
}

// retained returns the mailboxes whose last message is repeated on a new connection.
func (o *outbox) retained() []*mailbox {
	o.mu.Lock()
	defer o.mu.Unlock()
	var mailboxes []*mailbox
	for _, s := range o.order {
		if s.Retain {
			mailboxes = append(mailboxes, s)
		}
	}
	return mailboxes
}

// renewDiscovery sends the discovery messages again.
func (o *outbox) renewDiscovery() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, box := range o.order {
		if box.Discovery && !box.Holds("") { // nothing is left to remove of what was cleared
			box.Renew()
		}
	}
}
