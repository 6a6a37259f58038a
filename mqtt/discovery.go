package mqtt

import (
	"encoding/json"
	"errors"
	"os"
	"sync"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

const (
	announcedName = "homeassistant.json"
	// discoveryLimit is the maximum size of a discovery message in bytes, far below the limit of any broker.
	discoveryLimit = 16 << 10
)

// discovery publishes the device's entities to Home Assistant.
type discovery struct {
	homeassistant.Discovery // builds the messages; without a Prefix there are none
	outbox                  *outbox
	path                    string // of the file that lists the announced entities, empty for none

	mu        sync.Mutex // locked before the outbox's
	announced homeassistant.Announced
	saved     string // the content of the file
}

// maxDiscoveryTopic is an upper bound of a discovery packet's size without its payload, in bytes.
const maxDiscoveryTopic = 1000

// setLimit sets the size of messages for packets of at most so many bytes, 0 for any.
func (d *discovery) setLimit(packet int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Limit = discoveryLimit
	if packet > 0 {
		d.Limit = min(discoveryLimit, packet-maxDiscoveryTopic)
	}
}

// publish publishes the changed discovery messages. The caller holds mu.
func (d *discovery) publish(a *homeassistant.Announcement) error {
	d.settle()
	messages, after := d.announced.RemoveAll()
	if d.Prefix != "" {
		var err error
		if messages, after, err = d.Messages(a, d.announced); err != nil {
			return err
		}
	}
	d.announced = after
	d.save() // before it is published: what is on disk may be more than Home Assistant knows, not less
	d.outbox.mu.Lock()
	defer d.outbox.mu.Unlock()
	for _, m := range messages {
		key := topicKey{kind: kindDiscovery, name: m.Topic}
		if len(m.Payload) > 0 {
			d.outbox.change(key, string(m.Payload))
			continue
		}
		if box := d.outbox.mailboxes[key]; box == nil || !box.Holds("") {
			d.outbox.mailboxLocked(key).Put(func([]byte) []byte { return []byte{} })
		}
	}
	return nil
}

// settle forgets entities whose removal was delivered. The caller holds mu, or nothing is announced any more.
func (d *discovery) settle() {
	d.outbox.mu.Lock()
	defer d.outbox.mu.Unlock()
	for topic := range d.announced {
		if box := d.outbox.mailboxes[topicKey{kind: kindDiscovery, name: topic}]; box != nil && box.Settled() {
			d.announced.Settle(topic)
		}
	}
}

// close saves what was announced, without what Home Assistant has removed.
func (d *discovery) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle()
	d.save()
}

func (d *discovery) load() {
	d.announced = homeassistant.Announced{}
	if d.path == "" {
		return
	}
	data, err := os.ReadFile(d.path)
	if err == nil {
		err = json.Unmarshal(data, &d.announced)
	}
	if err != nil || d.announced == nil {
		d.announced = homeassistant.Announced{}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.outbox.link.Logger.Warn("previous Home Assistant discovery cannot be read, removed entities stay in Home Assistant", "file", d.path,
			"error", err)
	}
}

func (d *discovery) save() {
	if d.path == "" {
		return
	}
	data, err := json.Marshal(d.announced)
	if err == nil && string(data) != d.saved {
		err = atomicfile.Write(d.path, data, 0o600)
	}
	if err != nil {
		d.outbox.link.Logger.Warn(
			"Home Assistant discovery cannot be saved, entities removed while the daemon is stopped stay in Home Assistant",
			"file",
			d.path,
			"error",
			err,
		)
		return
	}
	d.saved = string(data)
}
