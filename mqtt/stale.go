package mqtt

import (
	"context"
	"slices"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// staleTopics holds the retained topics that an earlier process left on a broker, under the client's lock.
type staleTopics struct {
	announced chan struct{}  // closed once cameras are announced
	current   map[owner]bool // cameras, zones and lines by their topic levels
	cameras   []homeassistant.Camera
	checked   map[string]struct{} // brokers that were searched
}

// announce sets the current cameras, and their zones and lines as places. The caller holds Client.mu.
func (l *staleTopics) announce(cameras []homeassistant.Camera, places map[owner]bool) {
	if l.current == nil {
		close(l.announced)
	}
	l.cameras = slices.Clone(cameras)
	l.current = map[owner]bool{}
	for p := range places {
		if p == (owner{}) {
			continue // the device
		}
		at := owner{kind: p.kind, camera: topic.Level(p.camera)}
		if p.kind != 0 {
			at.name = topic.Level(p.name)
		}
		l.current[at] = true
	}
}

// ownerOf returns the owner of a retained topic, by its levels; false for a topic that no camera publishes.
func (c *Client) ownerOf(name string) (owner, bool) {
	camera, zone, line, ok := c.topics.Place(name)
	switch {
	case zone != "":
		return owner{kindZone, camera, zone}, ok
	case line != "":
		return owner{kindLine, camera, line}, ok
	}
	return owner{camera: camera}, ok
}

// clearStale clears the topics that earlier processes retained for cameras, zones and lines that no longer exist, and sets counts that they
// left to 0, once per broker. It reads the broker's retained messages over a connection of its own, which keeps the client's own limits for
// received messages small.
func (c *Client) clearStale(ctx context.Context, to address.Address) {
	select {
	case <-c.stale.announced:
	case <-ctx.Done():
		return
	}
	c.mu.Lock()
	_, known := c.stale.checked[to.String()]
	c.mu.Unlock()
	if known {
		return
	}
	cleared, err := c.clearStaleOn(ctx, to)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		c.Logger.Info("mqtt cannot look for topics of cameras that are gone", "broker", to.String(), "error", err)
	case cleared > 0:
		c.Logger.Info("mqtt removed retained topics of deleted cameras, zones and lines", "broker", to.String(),
			"topics", cleared)
	}
	c.mu.Lock()
	c.stale.checked[to.String()] = struct{}{}
	c.mu.Unlock()
}

func (c *Client) clearStaleOn(ctx context.Context, to address.Address) (int, error) {
	s, err := c.connectExtra(ctx, to, "-left")
	if err != nil {
		return 0, err
	}
	defer s.end()
	seen := map[string]bool{} // removed cameras
	return s.clearRetained(ctx, c.topics.States(), func(name string) (bool, []string) {
		at, ok := c.ownerOf(name)
		if !ok {
			return false, nil
		}
		if !c.isStale(name, at) {
			c.resetLeft(name, at)
			return false, nil
		}
		if seen[at.camera] || c.isCurrent(owner{camera: at.camera}) {
			return true, nil
		}
		seen[at.camera] = true
		return true, c.topics.Images(at.camera)
	})
}

func (c *Client) isCurrent(at owner) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stale.current[at]
}

// isStale reports whether a topic's owner no longer exists and this process does not publish the topic.
func (c *Client) isStale(name string, at owner) bool {
	if c.isCurrent(at) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(c.order, func(box *mailbox) bool { return box.Topic == name && !box.Cleared })
}
