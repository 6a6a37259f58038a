package broker

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// retained holds the retained messages by topic. The library's own index is not used: mochi 2.7.9 reads the path of a topic without a lock
// while it scans for a wildcard and another client retains a message. Its methods may be called from any goroutine.
type retained struct {
	limits *Limits

	mu       sync.Mutex
	messages map[string]packets.Packet
	bytes    int64 // topics and payloads
	refused  uint64
}

// fits reports whether there is room for a payload as the new value of a topic; an empty one removes the value. A message that does not fit
// is counted.
func (r *retained) fits(topic string, payload int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if payload == 0 {
		return true
	}
	old, known := r.messages[topic]
	size := int64(len(topic) + payload)
	if known {
		size -= sizeOf(&old)
	}
	if r.bytes+size <= r.limits.RetainedBytes && (known || len(r.messages) < r.limits.RetainedMessages) {
		return true
	}
	r.refused++
	return false
}

// put keeps a message as the value of its topic; an empty payload removes the value.
func (r *retained) put(pk packets.Packet) {
	message := pk.Copy(false)
	message.FixedHeader.Retain = true
	message.Origin = pk.Origin
	if message.Created == 0 {
		message.Created = time.Now().Unix()
	}
	if interval := int64(message.Properties.MessageExpiryInterval); interval > 0 && message.Expiry == 0 {
		message.Expiry = message.Created + interval
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(message.TopicName)
	if len(message.Payload) > 0 {
		r.messages[message.TopicName] = message
		r.bytes += sizeOf(&message)
	}
}

// remove drops the value of a topic; mu is held.
func (r *retained) remove(topic string) {
	if old, known := r.messages[topic]; known {
		delete(r.messages, topic)
		r.bytes -= sizeOf(&old)
	}
}

// matching returns the messages whose topics match a filter, and drops those that have expired.
func (r *retained) matching(filter string) (all []packets.Packet) {
	now := time.Now().Unix()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !strings.ContainsAny(filter, "+#") {
		message, known := r.messages[filter]
		if known && !expired(&message, now) {
			all = append(all, message)
		}
		return all
	}
	for topic := range r.messages {
		if !matches(filter, topic) {
			continue
		}
		message := r.messages[topic]
		if expired(&message, now) {
			r.remove(topic)
			continue
		}
		all = append(all, message)
	}
	return all
}

func (r *retained) stats() (messages int, bytes int64, refused uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.messages), r.bytes, r.refused
}

func sizeOf(pk *packets.Packet) int64 { return int64(len(pk.TopicName) + len(pk.Payload)) }

func expired(pk *packets.Packet, now int64) bool { return pk.Expiry > 0 && pk.Expiry <= now }

// matches reports whether a topic matches a filter with wildcards, by section 4.7 of MQTT 5: a filter that begins with a wildcard does not
// match a topic that begins with $.
func matches(filter, topic string) bool {
	if strings.HasPrefix(topic, "$") && (filter[0] == '+' || filter[0] == '#') {
		return false
	}
	for {
		level, filterRest, more := strings.Cut(filter, "/")
		if level == "#" {
			return true
		}
		name, topicRest, deeper := strings.Cut(topic, "/")
		if level != "+" && level != name {
			return false
		}
		switch {
		case !more && !deeper:
			return true
		case more && !deeper:
			return filterRest == "#" // a/# matches a
		case !more:
			return false
		}
		filter, topic = filterRest, topicRest
	}
}

// deliver sends the retained messages of a new subscription. It is called in the goroutine that reads from the client.
func (r *retained) deliver(client *mochi.Client, subscription *packets.Subscription, info *deliveryInfo) {
	for _, message := range r.matching(subscription.Filter) {
		if subscription.NoLocal && message.Origin == client.ID {
			continue
		}
		out := message.Copy(false)
		out.FixedHeader.Qos = min(out.FixedHeader.Qos, subscription.Qos, info.maximumQoS)
		if subscription.Identifier > 0 {
			out.Properties.SubscriptionIdentifier = []int{subscription.Identifier}
		}
		if out.FixedHeader.Qos > 0 && !info.track(client, &out) {
			continue
		}
		if client.WritePacket(out) != nil {
			return // the connection has ended
		}
	}
}

// deliveryInfo is what the delivery of messages needs to know of the server.
type deliveryInfo struct {
	maximumQoS      byte
	maximumInflight int
	receiveMaximum  int
	inflight        *int64 // the server's counter
}

// track registers a message of QoS 1 or 2 as in flight. It reports whether to send the message now; otherwise the client has no quota left,
// and the library sends the message when the client acknowledges another one.
func (d *deliveryInfo) track(client *mochi.Client, out *packets.Packet) bool {
	pending := client.State.Inflight.Len()
	if pending >= d.maximumInflight {
		return false
	}
	id, err := client.NextPacketID()
	if err != nil {
		return false
	}
	out.PacketID = uint16(id)
	quota := d.receiveMaximum
	if own := int(client.Properties.Props.ReceiveMaximum); own > 0 {
		quota = min(quota, own)
	}
	wait := pending >= quota
	if wait {
		out.Expiry = -1 // the library's mark for a message that waits for quota
	}
	if client.State.Inflight.Set(*out) {
		atomic.AddInt64(d.inflight, 1)
	}
	if wait {
		return false
	}
	client.State.Inflight.DecreaseSendQuota()
	return true
}
