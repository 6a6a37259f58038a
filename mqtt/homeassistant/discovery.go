package homeassistant

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// Discovery builds the discovery messages of one device.
// Source: https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
type Discovery struct {
	Prefix  string // first topic level, usually "homeassistant"
	Tree    topic.Tree
	Control bool // remote control is enabled
	// Limit is the maximum size of a message in bytes. Larger devices are split into several messages, but an entity is never divided.
	Limit int
}

// Message is a retained discovery message. An empty payload removes a device.
type Message struct {
	Topic   string
	Payload []byte
}

// Announced holds the announced entities by message topic and key.
type Announced map[string]map[string]Entity

// Birth returns the topic of Home Assistant's birth message.
func (d *Discovery) Birth() string { return d.Prefix + "/status" }

// Filter returns a filter that matches the topics of all messages.
func (d *Discovery) Filter() string { return d.Prefix + "/device/" + d.id() + "/+/config" }

func (d *Discovery) id() string { return identifier("edge-infer-" + d.Tree.Device) }

func (d *Discovery) topic(name string) string {
	return d.Prefix + "/device/" + d.id() + "/" + name + "/config"
}

// Messages returns the discovery messages in sending order and the entities announced by them. Entities of before that no longer exist are
// removed: the result contains them, marked, until the caller settles them.
func (d *Discovery) Messages(a *Announcement, before Announced) ([]Message, Announced, error) {
	after := Announced{}
	var messages []Message
	devices := []*device{d.hub(a)}
	names := map[string]bool{}
	for i := range a.Cameras {
		name := identifier(a.Cameras[i].Name)
		for names[name] {
			name += "_"
		}
		names[name] = true
		devices = append(devices, d.camera(a, &a.Cameras[i], name, before))
	}
	for _, device := range devices {
		more, err := d.divide(device, a, before, after)
		if err != nil {
			return nil, nil, fmt.Errorf("home assistant discovery: %w", err)
		}
		messages = append(messages, more...)
	}
	for topic, entities := range before {
		if after[topic] != nil || len(entities) == 0 {
			continue
		}
		after[topic] = allRemoved(entities)
		messages = append(messages, Message{Topic: topic})
	}
	return messages, after, nil
}

// partTopic returns the topic of the message n, from 0, of a device.
func (d *Discovery) partTopic(device string, n int) string {
	if n == 0 {
		return d.topic(device)
	}
	kind, rest, _ := strings.Cut(device, "-")
	return d.topic(strings.TrimSuffix(fmt.Sprintf("%s%d-%s", kind, n+1, rest), "-"))
}

// announced returns the keys of a device's entities that were announced and not removed.
func (d *Discovery) announced(device string, before Announced) map[string]bool {
	keys := map[string]bool{}
	for n := 0; before[d.partTopic(device, n)] != nil; n++ {
		for key, e := range before[d.partTopic(device, n)] {
			if !e.Removed {
				keys[key] = true
			}
		}
	}
	return keys
}

// part is one message of a device.
type part struct {
	topic      string
	components map[string]any
	size       int
}

// divide returns the messages of a device. An entity stays in its previous message if possible, because Home Assistant identifies it by
// that.
func (d *Discovery) divide(of *device, a *Announcement, before, after Announced) ([]Message, error) {
	frame := map[string]any{
		"device": of.info, "origin": map[string]any{"name": "edge-infer", "sw_version": a.Version, "support_url": projectURL},
		"availability": of.availability, "availability_mode": "all", "qos": 1,
	}
	empty, err := json.Marshal(frame)
	if err != nil {
		return nil, err
	}
	var parts []*part
	at := func(n int) *part {
		for len(parts) <= n {
			parts = append(parts, &part{
				topic: d.partTopic(of.name, len(parts)), components: map[string]any{}, size: len(empty) + len(`,"components":{}`),
			})
		}
		return parts[n]
	}
	for _, e := range of.entities {
		payload, err := json.Marshal(e.config)
		if err != nil {
			return nil, err
		}
		size := len(payload) + len(e.key) + len(`"":,`)
		n := 0
		for known := 0; before[at(known).topic] != nil; known++ {
			if old, found := before[at(known).topic][e.key]; found && !old.Removed {
				n = known
				break
			}
		}
		for len(at(n).components) > 0 && at(n).size+size > d.Limit {
			n++
		}
		at(n).components[e.key] = e.config
		at(n).size += size
	}
	var messages []Message
	for _, p := range parts {
		if len(p.components) == 0 {
			continue // if it was there before, it is cleared
		}
		known := map[string]Entity{}
		for key, c := range p.components {
			known[key] = Entity{Platform: c.(map[string]any)["platform"].(string)}
		}
		// Home Assistant removes an entity when it sees nothing but its platform.
		for key, e := range before[p.topic] {
			if _, stays := known[key]; !stays {
				p.components[key] = map[string]any{"platform": e.Platform}
				known[key] = Entity{Platform: e.Platform, Removed: true}
			}
		}
		frame["components"] = p.components
		payload, err := json.Marshal(frame)
		if err != nil {
			return nil, err
		}
		after[p.topic] = known
		messages = append(messages, Message{p.topic, payload})
	}
	return messages, nil
}

const projectURL = "https://github.com/edge-infer/edge-infer"

// Entity is the stored state of an announced entity.
type Entity struct {
	Platform string `json:"platform"`
	Removed  bool   `json:"removed,omitempty"` // its removal is being sent
}

// RemoveAll returns messages that remove all announced entities.
func (a Announced) RemoveAll() ([]Message, Announced) {
	after := Announced{}
	var messages []Message
	for topic, entities := range a {
		if len(entities) > 0 {
			messages = append(messages, Message{Topic: topic})
			after[topic] = allRemoved(entities)
		}
	}
	return messages, after
}

// allRemoved returns the entities, marked as removed.
func allRemoved(entities map[string]Entity) map[string]Entity {
	removed := map[string]Entity{}
	for key, e := range entities {
		removed[key] = Entity{Platform: e.Platform, Removed: true}
	}
	return removed
}

// Settle forgets the removed entities of a delivered message.
func (a Announced) Settle(topic string) {
	for key, e := range a[topic] {
		if e.Removed {
			delete(a[topic], key)
		}
	}
	if len(a[topic]) == 0 {
		delete(a, topic)
	}
}
