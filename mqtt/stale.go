package mqtt

import (
	"context"
	"slices"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// staleTopics clears the retained topics that an earlier process left on a broker.
type staleTopics struct {
	outbox *outbox

	// Guarded by the outbox's lock.
	announced chan struct{}  // closed once cameras are announced
	current   map[owner]bool // cameras, zones and lines by their topic levels
	cameras   []homeassistant.Camera
	checked   map[string]struct{} // brokers that were searched
}

// announce sets the current cameras, and their zones and lines as places. The caller holds the outbox.
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
func (l *staleTopics) ownerOf(name string) (owner, bool) {
	camera, zone, line, ok := l.outbox.topics.Place(name)
	switch {
	case zone != "":
		return owner{kindZone, camera, zone}, ok
	case line != "":
		return owner{kindLine, camera, line}, ok
	}
	return owner{camera: camera}, ok
}

// clear clears the topics that earlier processes retained for cameras, zones and lines that no longer exist, and sets counts that they
// left to 0, once per broker. It reads the broker's retained messages over a connection of its own, which keeps the client's own limits for
// received messages small.
func (l *staleTopics) clear(ctx context.Context, to address.Address) {
	select {
	case <-l.announced:
	case <-ctx.Done():
		return
	}
	l.outbox.mu.Lock()
	_, known := l.checked[to.String()]
	l.outbox.mu.Unlock()
	if known {
		return
	}
	cleared, err := l.clearOn(ctx, to)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		l.outbox.link.Logger.Info("mqtt cannot look for topics of cameras that are gone", "broker", to.String(), "error", err)
	case cleared > 0:
		l.outbox.link.Logger.Info("mqtt removed retained topics of deleted cameras, zones and lines", "broker", to.String(),
			"topics", cleared)
	}
	l.outbox.mu.Lock()
	l.checked[to.String()] = struct{}{}
	l.outbox.mu.Unlock()
}

func (l *staleTopics) clearOn(ctx context.Context, to address.Address) (int, error) {
	s, err := l.outbox.link.connectExtra(ctx, to, "-left")
	if err != nil {
		return 0, err
	}
	defer s.end()
	seen := map[string]bool{} // removed cameras
	return s.clearRetained(ctx, l.outbox.topics.States(), func(name string) (bool, []string) {
		at, ok := l.ownerOf(name)
		if !ok {
			return false, nil
		}
		if !l.isStale(name, at) {
			l.resetLeft(name, at)
			return false, nil
		}
		if seen[at.camera] || l.isCurrent(owner{camera: at.camera}) {
			return true, nil
		}
		seen[at.camera] = true
		return true, l.outbox.topics.Images(at.camera)
	})
}

func (l *staleTopics) isCurrent(at owner) bool {
	l.outbox.mu.Lock()
	defer l.outbox.mu.Unlock()
	return l.current[at]
}

// isStale reports whether a topic's owner no longer exists and this process does not publish the topic.
func (l *staleTopics) isStale(name string, at owner) bool {
	if l.isCurrent(at) {
		return false
	}
	l.outbox.mu.Lock()
	defer l.outbox.mu.Unlock()
	return !slices.ContainsFunc(l.outbox.order, func(box *mailbox) bool { return box.Topic == name && !box.Cleared })
}

// resetLeft publishes 0 for a count that an earlier process retained and this one has not published: an object that was present when that
// process was killed would be present for ever. Other topics of the camera, zone or line stay as they are.
func (l *staleTopics) resetLeft(name string, at owner) {
	l.outbox.mu.Lock()
	cameras := l.cameras
	l.outbox.mu.Unlock()
	i := slices.IndexFunc(cameras, func(camera homeassistant.Camera) bool { return topic.Level(camera.Name) == at.camera })
	if i < 0 {
		return
	}
	key, found := l.countOf(&cameras[i], name)
	if !found || !l.isCurrent(at) {
		return
	}
	l.outbox.mu.Lock()
	defer l.outbox.mu.Unlock()
	l.outbox.initialCount(key)
}

// countOf returns the key of a camera's count that is published on a topic.
func (l *staleTopics) countOf(camera *homeassistant.Camera, name string) (key topicKey, found bool) {
	var keys []topicKey
	for _, label := range countLabels(camera.Labels) {
		keys = append(keys, countsOf(camera, label)...)
	}
	for _, line := range camera.Lines {
		for _, label := range camera.Labels {
			keys = append(keys, topicKey{kind: kindLineLabel, camera: camera.Name, name: line, label: label})
		}
	}
	for _, key := range keys {
		if l.outbox.countTopic(key) == name {
			return key, true
		}
	}
	return topicKey{}, false
}

// countTopic returns the topic of a key of countsOf, or of a line by label.
func (o *outbox) countTopic(key topicKey) string {
	switch key.kind {
	case kindZone:
		return o.topics.Zone(key.camera, key.name, key.label)
	case kindLineLabel:
		return o.topics.LineLabel(key.camera, key.name, key.label)
	}
	return o.topics.Count(key.camera, key.label)
}
