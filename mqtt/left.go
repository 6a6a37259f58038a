package mqtt

import (
	"context"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// left is what is known of topics that an earlier process has left on a broker, under the client's lock.
type left struct {
	announced chan struct{}       // closed once cameras are announced
	stay      map[[3]string]bool  // levels of cameras, their zones and their lines, as topic.Tree.Place gives them
	looked    map[string]struct{} // addresses of brokers that were looked at
}

// announce notes the cameras that there are. The client's lock is held.
func (l *left) announce(cameras []homeassistant.Camera) {
	if l.stay == nil {
		close(l.announced)
	}
	l.stay = map[[3]string]bool{}
	for _, camera := range cameras {
		level := topic.Level(camera.Name)
		l.stay[[3]string{level}] = true
		for _, zone := range camera.Zones {
			l.stay[[3]string{level, topic.Level(zone)}] = true
		}
		for _, line := range camera.Lines {
			l.stay[[3]string{level, "", topic.Level(line)}] = true
		}
	}
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
		camera, _, _, ok := c.topics.Place(name)
		if !ok || !c.isLeft(name) {
			return false, nil
		}
		if seen[camera] || c.hasCamera(camera) {
			return true, nil
		}
		seen[camera] = true
		return true, c.topics.Pictures(camera)
	})
}

func (c *Client) hasCamera(level string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left.stay[[3]string{level}]
}

// isLeft reports whether a topic belongs to no camera, zone or line that there is, and is none that this process publishes.
func (c *Client) isLeft(name string) bool {
	camera, zone, line, _ := c.topics.Place(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left.stay[[3]string{camera, zone, line}] {
		return false
	}
	for _, box := range c.order {
		if box.Topic == name && !box.Cleared {
			return false
		}
	}
	return true
}
