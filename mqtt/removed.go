package mqtt

import (
	"slices"

	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
)

// keepOnly clears the retained topics of other cameras, zones and lines. The empty message replaces the value, is queued like one and is
// repeated at each connection, because another configured broker may hold the value too. It covers topics published by this client; see
// staleTopics for those of earlier processes. The caller holds mu.
func (o *outbox) keepOnly(stay map[owner]bool) {
	o.evictCleared()
	gone := map[*mailbox]bool{}
	for key, s := range o.mailboxes {
		switch {
		case stay[key.owner()] || s.Cleared:
		case s.Retain:
			s.Cleared = true
			s.Put(func([]byte) []byte { return []byte{} })
		default:
			gone[s] = true
		}
	}
	o.discard(gone)
	o.feeds = slices.DeleteFunc(o.feeds, func(f feed) bool { return gone[f.detections] })
}

// evictCleared frees the mailboxes of cleared topics once half of topicLimit is in use. The caller holds mu.
func (o *outbox) evictCleared() {
	if len(o.mailboxes) < topicLimit/2 {
		return
	}
	gone := map[*mailbox]bool{}
	for _, s := range o.order {
		gone[s] = s.Cleared && s.Settled()
	}
	o.discard(gone)
}

// discard removes mailboxes from the table; their queued messages are still sent. The caller holds mu.
func (o *outbox) discard(gone map[*mailbox]bool) {
	for key, s := range o.mailboxes {
		if gone[s] {
			delete(o.mailboxes, key)
		}
	}
	o.order = slices.DeleteFunc(o.order, func(s *mailbox) bool { return gone[s] })
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
