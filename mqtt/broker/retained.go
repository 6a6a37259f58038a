package broker

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// retained is the broker's index of retained messages: it bounds them, matches them with filters and delivers them. The library stores the
// messages in a map that is safe for concurrent use, but its own search for a filter's messages (TopicsIndex.Messages in v2.7.9) reads
// topic nodes without the lock that RetainMessage writes them under. That search is never run: see takeOver.
type retained struct {
	server   *mochi.Server
	limits   *Limits
	queue    *queue
	pace     *pace
	messages *packets.Packets // the library's store by topic, $SYS topics included

	mu      sync.Mutex
	sizes   map[string]int64 // topic and payload in bytes by topic, without $SYS topics
	bytes   int64
	refused uint64
}

func newRetained(server *mochi.Server, limits *Limits) *retained {
	return &retained{server: server, limits: limits, messages: server.Topics.Retained, sizes: map[string]int64{}}
}

// fits reports whether a payload has room as the new value of a topic; an empty one deletes the topic's value. A message that does not fit
// is counted as refused.
func (r *retained) fits(topic string, payload int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if payload == 0 {
		return true
	}
	old, known := r.sizes[topic]
	size := int64(len(topic) + payload)
	if r.bytes-old+size <= r.limits.RetainedBytes && (known || len(r.sizes) < r.limits.RetainedMessages) {
		return true
	}
	r.refused++
	return false
}

// update copies the library's retained message of a topic to the index. Reading the store under the lock makes the last of several
// concurrent updates see the final state.
func (r *retained) update(topic string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes -= r.sizes[topic]
	delete(r.sizes, topic)
	if pk, stored := r.messages.Get(topic); stored {
		size := int64(len(topic) + len(pk.Payload))
		r.sizes[topic] = size
		r.bytes += size
	}
}

func (r *retained) stats() (messages int, bytes int64, refused uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sizes), r.bytes, r.refused
}

// topics returns the topics with a retained message that match a filter, sorted.
func (r *retained) topics(filter string) []string {
	if !strings.ContainsAny(filter, "+#") {
		return []string{filter}
	}
	var found []string
	if strings.HasPrefix(filter, mochi.SysPrefix) {
		for topic := range r.messages.GetAll() {
			if matches(filter, topic) {
				found = append(found, topic)
			}
		}
	} else {
		r.mu.Lock()
		for topic := range r.sizes {
			if matches(filter, topic) {
				found = append(found, topic)
			}
		}
		r.mu.Unlock()
	}
	slices.Sort(found)
	return found
}

// matches reports whether a valid filter matches a topic (MQTT 5, section 4.7): + stands for one level, # for the parent and every level
// below it; neither matches a first level that starts with $.
func matches(filter, topic string) bool {
	if strings.HasPrefix(topic, "$") && !strings.HasPrefix(filter, "$") {
		return false
	}
	for {
		level, restOfFilter, moreFilter := strings.Cut(filter, "/")
		if level == "#" {
			return true
		}
		name, restOfTopic, moreTopic := strings.Cut(topic, "/")
		if level != "+" && level != name {
			return false
		}
		if !moreTopic {
			return !moreFilter || restOfFilter == "#"
		}
		if !moreFilter {
			return false
		}
		filter = restOfFilter
		topic = restOfTopic
	}
}

// Values of the option "retain handling" of a subscription.
const (
	sendRetained      = 0
	sendRetainedOnNew = 1
	doNotSendRetained = 2
)

// resolveRetainHandling decides for each filter whether its retained messages are sent, while it is known which subscriptions are new.
func resolveRetainHandling(client *mochi.Client, filters packets.Subscriptions) {
	for i := range filters {
		if filters[i].RetainHandling != sendRetainedOnNew {
			continue
		}
		filters[i].RetainHandling = sendRetained
		if _, existed := client.State.Subscriptions.Get(filters[i].Filter); existed {
			filters[i].RetainHandling = doNotSendRetained
		}
	}
}

// takeOver returns the accepted subscriptions whose retained messages are to be sent, and marks all filters so that the library, which
// reads the same array afterwards, does not send them itself. Shared subscriptions get no retained messages (MQTT 5, section 4.8.2).
func takeOver(filters packets.Subscriptions, reasonCodes []byte) []packets.Subscription {
	var due []packets.Subscription
	for i, sub := range filters {
		accepted := reasonCodes[i] < packets.ErrUnspecifiedError.Code
		if accepted && sub.RetainHandling == sendRetained && !mochi.IsSharedFilter(sub.Filter) {
			due = append(due, sub)
		}
		filters[i].RetainHandling = doNotSendRetained
	}
	return due
}

// deliver sends the retained messages of a subscription. It runs on the client's reading goroutine and blocks while the client does not
// read, for the time that guard allows.
func (r *retained) deliver(client *mochi.Client, sub packets.Subscription) {
	const attempts = 3
	if strings.ContainsAny(sub.Filter, "+#") {
		messages, _, _ := r.stats()
		r.pace.wait(client.Net.Conn, int64(messages)*matchCost)
	}
	for _, topic := range r.topics(sub.Filter) {
		for range attempts {
			pk, stored := r.messages.Get(topic)
			if !stored {
				break
			}
			r.pace.wait(client.Net.Conn, messageSize(topic, pk.Payload))
			if err := r.send(client, sub, pk); err != nil {
				break
			}
			// A value published meanwhile may have reached the client before the older one sent here: the newest must come last.
			newest, stored := r.messages.Get(topic)
			if !stored || &newest.Payload[0] == &pk.Payload[0] {
				break
			}
		}
	}
}

// send writes one retained message to a client. While the client has as many unacknowledged messages as it allows, messages go out with QoS
// 0.
func (r *retained) send(client *mochi.Client, sub packets.Subscription, pk packets.Packet) error {
	if sub.NoLocal && pk.Origin == client.ID {
		return nil
	}
	out := pk.Copy(false)
	out.FixedHeader.Qos = min(out.FixedHeader.Qos, sub.Qos)
	if sub.Identifier > 0 {
		out.Properties.SubscriptionIdentifier = []int{sub.Identifier}
	}
	inflight := client.State.Inflight
	if inflight.Len() >= int(cmp.Or(client.Properties.Props.ReceiveMaximum, r.server.Options.Capabilities.MaximumInflight)) {
		out.FixedHeader.Qos = 0
	}
	if out.FixedHeader.Qos == 0 {
		return client.WritePacket(out)
	}
	id, err := client.NextPacketID()
	if err != nil {
		return err
	}
	out.PacketID = uint16(id)
	inflight.Set(out)
	r.queue.add(client, &out)
	atomic.AddInt64(&r.server.Info.Inflight, 1)
	err = client.WritePacket(out)
	if errors.Is(err, packets.ErrPacketTooLarge) {
		inflight.Delete(out.PacketID)
		r.queue.complete(client.ID, out.PacketID)
		atomic.AddInt64(&r.server.Info.Inflight, -1)
	}
	return err
}
