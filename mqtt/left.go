package mqtt

import (
	"context"
	"slices"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// left is what is known of topics that an earlier process has left on a broker, under the client's lock.
type left struct {
	announced chan struct{}       // closed once cameras are announced
	stay      map[place]bool      // cameras, their zones and their lines, all by the levels of their topics
	looked    map[string]struct{} // addresses of brokers that were looked at
}

// announce notes the places that there are. The client's lock is held.
func (l *left) announce(places map[place]bool) {
	if l.stay == nil {
		close(l.announced)
	}
	l.stay = map[place]bool{}
	for p := range places {
		if p == (place{}) {
			continue // the device
		}
		at := place{kind: p.kind, camera: topic.Level(p.camera)}
		if p.kind != 0 {
			at.name = topic.Level(p.name)
		}
		l.stay[at] = true
	}
}

// placeOf is what a retained topic belongs to, by its levels; false for one that no camera publishes.
func (c *Client) placeOf(name string) (place, bool) {
	camera, zone, line, ok := c.topics.Place(name)
	switch {
	case zone != "":
		return place{kindZone, camera, zone}, ok
	case line != "":
		return place{kindLine, camera, line}, ok
	}
	return place{camera: camera}, ok
}

// clearLeft clears what an earlier process has left on a broker of cameras, zones and lines that there are no more, once a process. What
// the broker retains tells which these are. It has a connection of its own for that, so that what comes in on the client's own stays small.
func (c *Client) clearLeft(ctx context.Context, to address.Address) {
	select {
	case <-c.left.announced:
	case <-ctx.Done():
		return
	}
	c.mu.Lock()
	_, known := c.left.looked[to.String()]
	c.mu.Unlock()
	if known {
		return
	}
	cleared, err := c.clearThere(ctx, to)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		c.Logger.Info("mqtt cannot look for topics of cameras that are gone", "broker", to.String(), "error", err)
	case cleared > 0:
		c.Logger.Info("mqtt cleared what an earlier run has left of cameras, zones and lines that are gone", "broker", to.String(),
			"topics", cleared)
	}
	c.mu.Lock()
	c.left.looked[to.String()] = struct{}{}
	c.mu.Unlock()
}

func (c *Client) clearThere(ctx context.Context, to address.Address) (int, error) {
	s, err := c.connectAside(ctx, to, "-left")
	if err != nil {
		return 0, err
	}
	defer s.end()
	seen := map[string]bool{} // cameras that are gone
	return s.clearRetained(ctx, c.topics.States(), func(name string) (bool, []string) {
		at, ok := c.placeOf(name)
		if !ok || !c.isLeft(name, at) {
			return false, nil
		}
		if seen[at.camera] || c.stays(place{camera: at.camera}) {
			return true, nil
		}
		seen[at.camera] = true
		return true, c.topics.Images(at.camera)
	})
}

func (c *Client) stays(at place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left.stay[at]
}

// isLeft reports whether a topic's place is gone, and the topic none that this process publishes.
func (c *Client) isLeft(name string, at place) bool {
	if c.stays(at) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(c.order, func(box *mailbox) bool { return box.Topic == name && !box.Cleared })
}
