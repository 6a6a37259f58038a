package mqtt

import (
	"slices"

	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

// clearRemoved clears the retained topics of removed cameras, zones and lines. The empty message replaces the value, is queued like one and
// is repeated at each connection, because another configured broker may hold the value too. It covers topics published by this client; see
// clearStale for those of earlier processes.
func (c *Client) clearRemoved(cameras []homeassistant.Camera) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evictCleared()
	stay := ownersOf(cameras)
	c.stale.announce(cameras, stay)
	gone := map[*mailbox]bool{}
	for key, s := range c.mailboxes {
		switch {
		case stay[key.owner()] || s.Cleared:
		case s.Retain:
			s.Cleared = true
			s.Put(func([]byte) []byte { return []byte{} })
		default:
			gone[s] = true
		}
	}
	c.discard(gone)
	c.feeds = slices.DeleteFunc(c.feeds, func(f feed) bool { return gone[f.detections] })
	for name, camera := range c.cameras {
		if !stay[owner{camera: camera}] {
			delete(c.cameras, name)
		}
	}
}

// evictCleared frees the mailboxes of cleared topics once half of topicLimit is in use. The caller holds mu.
func (c *Client) evictCleared() {
	if len(c.mailboxes) < topicLimit/2 {
		return
	}
	gone := map[*mailbox]bool{}
	for _, s := range c.order {
		gone[s] = s.Cleared && s.Settled()
	}
	c.discard(gone)
}

// discard removes mailboxes from the table; their queued messages are still sent. The caller holds mu.
func (c *Client) discard(gone map[*mailbox]bool) {
	for key, s := range c.mailboxes {
		if gone[s] {
			delete(c.mailboxes, key)
		}
	}
	c.order = slices.DeleteFunc(c.order, func(s *mailbox) bool { return gone[s] })
}

// owner identifies what a topic belongs to: a camera, one of its zones or one of its lines. The zero value is the device.
type owner struct {
	kind         kind // kindZone or kindLine, else 0
	camera, name string
}

// owner returns the camera, zone or line that the topic belongs to.
func (k topicKey) owner() owner {
	switch k.kind {
	case kindZone, kindFrigateZone, kindFrigateZoneActive:
		return owner{kindZone, k.camera, k.name}
	case kindLine, kindLineLabel:
		return owner{kindLine, k.camera, k.name}
	}
	return owner{camera: k.camera}
}

// ownersOf returns the device, the cameras, and their zones and lines.
func ownersOf(cameras []homeassistant.Camera) map[owner]bool {
	all := map[owner]bool{{}: true}
	for _, camera := range cameras {
		all[owner{camera: camera.Name}] = true
		for _, zone := range camera.Zones {
			all[owner{kindZone, camera.Name, zone}] = true
		}
		for _, line := range camera.Lines {
			all[owner{kindLine, camera.Name, line}] = true
		}
	}
	return all
}
