package mqtt

import (
	"slices"

	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

const (
	allLabels   = topic.Total
	noCrossings = `{"in":0,"out":0}`
)

// publishInitial publishes 0 for the counts of announced cameras that this process has not published: they would be unknown until something
// is counted, or keep the value of an earlier process.
func (c *Client) publishInitial(a *homeassistant.Announcement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range a.Cameras {
		camera := &a.Cameras[i]
		if len(camera.Labels) == 0 {
			continue // nothing is counted
		}
		for _, label := range countLabels(a.CountedLabels(camera)) {
			for _, key := range countsOf(camera, label) {
				c.initialCount(key)
			}
		}
		for _, line := range camera.Lines {
			c.initialCount(topicKey{kind: kindLine, camera: camera.Name, name: line})
		}
	}
}

// countLabels returns the labels under which objects of labels are counted, and that of the total.
func countLabels(labels []string) []string {
	counted := []string{allLabels}
	for _, label := range labels {
		counted = append(counted, topic.CountLabel(label))
	}
	return counted
}

// countsOf returns the topics that count the present objects of a label, those of Frigate not among them.
func countsOf(camera *homeassistant.Camera, label string) []topicKey {
	keys := []topicKey{{kind: kindCount, camera: camera.Name, label: label}}
	for _, zone := range camera.Zones {
		keys = append(keys, topicKey{kind: kindZone, camera: camera.Name, name: zone, label: label})
	}
	return keys
}

// initialCount publishes the first value of a count, and of its topic for Frigate, unless there is one. The caller holds mu.
func (c *Client) initialCount(key topicKey) {
	if c.mailboxes[key] != nil {
		return // the frame loop is about to publish a value, if it has not yet
	}
	value := "0"
	switch key.kind {
	case kindLine, kindLineLabel:
		value = noCrossings
	case kindCount, kindZone:
		if c.Frigate != "" {
			frigate := key
			frigate.kind = kindFrigateCount
			if key.kind == kindZone {
				frigate.kind = kindFrigateZone
			}
			c.initialCount(frigate)
		}
	}
	c.change(key, value)
}

// resetLeft publishes 0 for a count that an earlier process retained and this one has not published: an object that was present when that
// process was killed would be present for ever. Other topics of the camera, zone or line stay as they are.
func (c *Client) resetLeft(name string, at owner) {
	c.mu.Lock()
	cameras := c.stale.cameras
	c.mu.Unlock()
	i := slices.IndexFunc(cameras, func(camera homeassistant.Camera) bool { return topic.Level(camera.Name) == at.camera })
	if i < 0 {
		return
	}
	key, found := c.countOf(&cameras[i], name)
	if !found || !c.isCurrent(at) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.initialCount(key)
}

// countOf returns the key of a camera's count that is published on a topic.
func (c *Client) countOf(camera *homeassistant.Camera, name string) (key topicKey, found bool) {
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
		if c.countTopic(key) == name {
			return key, true
		}
	}
	return topicKey{}, false
}

func (c *Client) countTopic(key topicKey) string {
	switch key.kind {
	case kindZone:
		return c.topics.Zone(key.camera, key.name, key.label)
	case kindLineLabel:
		return c.topics.LineLabel(key.camera, key.name, key.label)
	}
	return c.topics.Count(key.camera, key.label)
}
