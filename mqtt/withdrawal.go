package mqtt

import "slices"

// withdraw clears the retained topics of what was published and is not among cameras any more: an empty message takes the place of the
// value, waits for the broker like one, and is repeated at each connection like one, for another broker of the list may hold the value too.
// Only this client's own values are known; those of an earlier process stay until Forget.
func (c *Client) withdraw(cameras []AnnouncedCamera) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRoom()
	stay := places(cameras)
	kept := map[string]bool{} // topics; names that differ may share one
	for key, s := range c.slots {
		if stay[key.place()] {
			kept[s.topic] = true
		}
	}
	gone := map[*slot]bool{}
	for key, s := range c.slots {
		switch {
		case stay[key.place()] || s.withdrawn:
		case s.retain && !kept[s.topic]:
			s.withdrawn = true
			s.put(func([]byte) []byte { return []byte{} })
		default:
			gone[s] = true
		}
	}
	c.discard(gone)
	c.feeds = slices.DeleteFunc(c.feeds, func(f feed) bool { return gone[f.detections] })
	for name, camera := range c.cameras {
		if !stay[place{camera: camera}] {
			delete(c.cameras, name)
		}
	}
}

// makeRoom gives up what earlier withdrawals have cleared, once the topics there may be are half used up. The lock is held.
func (c *Client) makeRoom() {
	if len(c.slots) < slotLimit/2 {
		return
	}
	gone := map[*slot]bool{}
	for _, s := range c.order {
		gone[s] = s.withdrawn && s.settled()
	}
	c.discard(gone)
}

// discard takes slots out of the table; what waits in them is still sent. The lock is held.
func (c *Client) discard(gone map[*slot]bool) {
	for key, s := range c.slots {
		if gone[s] {
			delete(c.slots, key)
		}
	}
	c.order = slices.DeleteFunc(c.order, func(s *slot) bool { return gone[s] })
}

// place is a camera, one of its zones or one of its lines; the zero place is the device.
type place struct {
	kind         kind // kindZone or kindLine, else 0
	camera, name string
}

// place is what the topic belongs to.
func (k slotKey) place() place {
	switch k.kind {
	case kindZone:
		return place{kindZone, k.camera, k.name}
	case kindLine, kindLineLabel:
		return place{kindLine, k.camera, k.name}
	}
	return place{camera: k.camera}
}

// places are the device and what the cameras have.
func places(cameras []AnnouncedCamera) map[place]bool {
	all := map[place]bool{{}: true}
	for _, camera := range cameras {
		all[place{camera: camera.Name}] = true
		for _, zone := range camera.Zones {
			all[place{kindZone, camera.Name, zone}] = true
		}
		for _, line := range camera.Lines {
			all[place{kindLine, camera.Name, line}] = true
		}
	}
	return all
}
