package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/edge-infer/edge-infer/engine/atomicfile"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

const (
	announcedName = "homeassistant.json"
	// discoveryLimit is how many bytes a discovery message may have: far less than any broker takes.
	discoveryLimit = 16 << 10
)

// Announce says what the device has from now on. It publishes that to Home Assistant, QoS 1 and retained, and again whenever Home Assistant
// comes up; with an empty DiscoveryPrefix it does not. Home Assistant is also told what is gone, be it since an earlier process: what it
// was told is kept beside the event spool. Then the retained topics of each camera, zone and line are cleared that has published before and
// is not in the announcement. Nothing of those may be published any more.
func (c *Client) Announce(a *homeassistant.Announcement) error {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	if err := c.discover(a); err != nil {
		return fmt.Errorf("announce device: %w", err)
	}
	c.clearRemoved(a.Cameras)
	c.pruneRemote(a.Cameras)
	return nil
}

// discovery makes the discovery messages.
func (c *Client) discovery() *homeassistant.Discovery {
	limit := discoveryLimit
	if c.MaxPacket > 0 {
		limit = min(limit, c.MaxPacket-maxDiscoveryTopic)
	}
	return &homeassistant.Discovery{Prefix: c.DiscoveryPrefix, Tree: c.topics, Control: c.Controller != nil, Limit: limit}
}

// maxDiscoveryTopic is more than a discovery message's packet has beside its payload.
const maxDiscoveryTopic = 1000

// discover publishes what has changed of the discovery messages. announcing is held.
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

// settleAnnounced leaves out what Home Assistant has been told to be gone. announcing is held, or nothing is announced any more.
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
		c.Logger.Warn("Home Assistant discovery cannot be saved, entities removed while the daemon is stopped stay in Home Assistant", "file", path,
			"error", err)
		return
	}
	c.announcedSaved = string(data)
}
