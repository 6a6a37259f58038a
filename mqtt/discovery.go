package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

const (
	announcedName = "homeassistant.json"
	// discoveryLimit is the maximum size of a discovery message in bytes, far below the limit of any broker.
	discoveryLimit = 16 << 10
)

// Announce sets the device's cameras and entities. It publishes them to Home Assistant, QoS 1 and retained, and again whenever Home
// Assistant starts, unless DiscoveryPrefix is empty. Entities announced earlier, also by a previous process (a file beside the event spool
// lists them), are removed from Home Assistant. The retained topics of cameras, zones and lines that are not announced any more are
// cleared; nothing may be published to them afterwards. Counts without a value are published as 0.
func (c *Client) Announce(a *homeassistant.Announcement) error {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	if err := c.discover(a); err != nil {
		return fmt.Errorf("announce device: %w", err)
	}
	c.clearRemoved(a.Cameras)
	c.publishInitial(a)
	c.pruneRemote(a.Cameras)
	return nil
}

// discovery returns the builder of discovery messages.
func (c *Client) discovery() *homeassistant.Discovery {
	limit := discoveryLimit
	if c.MaxPacket > 0 {
		limit = min(limit, c.MaxPacket-maxDiscoveryTopic)
	}
	return &homeassistant.Discovery{Prefix: c.DiscoveryPrefix, Tree: c.topics, Control: c.Controller != nil, Limit: limit}
}

// maxDiscoveryTopic is an upper bound of a discovery packet's size without its payload, in bytes.
const maxDiscoveryTopic = 1000

// discover publishes the changed discovery messages. The caller holds announcing.
func (c *Client) discover(a *homeassistant.Announcement) error {
	c.settleAnnounced()
	messages, after := c.announced.RemoveAll()
	if c.DiscoveryPrefix != "" {
		var err error
		if messages, after, err = c.discovery().Messages(a, c.announced); err != nil {
			return err
		}
	}
	c.announced = after
	c.saveAnnounced() // before it is published: what is on disk may be more than Home Assistant knows, not less
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range messages {
		key := topicKey{kind: kindDiscovery, name: m.Topic}
		if len(m.Payload) > 0 {
			c.change(key, string(m.Payload))
			continue
		}
		if box := c.mailboxes[key]; box == nil || !box.Holds("") {
			c.mailboxLocked(key).Put(func([]byte) []byte { return []byte{} })
		}
	}
	return nil
}

// settleAnnounced forgets entities whose removal was delivered. The caller holds announcing, or nothing is announced any more.
func (c *Client) settleAnnounced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic := range c.announced {
		if box := c.mailboxes[topicKey{kind: kindDiscovery, name: topic}]; box != nil && box.Settled() {
			c.announced.Settle(topic)
		}
	}
}

// renewDiscovery sends the discovery messages again.
func (c *Client) renewDiscovery() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, box := range c.order {
		if box.Discovery && !box.Holds("") { // nothing is left to remove of what was cleared
			box.Renew()
		}
	}
}

func (c *Client) loadAnnounced() {
	c.announced = homeassistant.Announced{}
	path := c.statePath(announcedName)
	if path == "" {
		return
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &c.announced)
	}
	if err != nil || c.announced == nil {
		c.announced = homeassistant.Announced{}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.Logger.Warn("previous Home Assistant discovery cannot be read, removed entities stay in Home Assistant", "file", path,
			"error", err)
	}
}

func (c *Client) saveAnnounced() {
	path := c.statePath(announcedName)
	if path == "" {
		return
	}
	data, err := json.Marshal(c.announced)
	if err == nil && string(data) != c.announcedSaved {
		err = atomicfile.Write(path, data, 0o600)
	}
	if err != nil {
		c.Logger.Warn(
			"Home Assistant discovery cannot be saved, entities removed while the daemon is stopped stay in Home Assistant",
			"file",
			path,
			"error",
			err,
		)
		return
	}
	c.announcedSaved = string(data)
}
