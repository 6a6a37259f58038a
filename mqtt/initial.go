package mqtt

import (
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

const (
	allLabels   = topic.Total
	noCrossings = `{"in":0,"out":0}`
)

// publishInitial publishes 0 for the counts of announced cameras that this process has not published: they would be unknown until something
// is counted, or keep the value of an earlier process.
func (o *outbox) publishInitial(a *homeassistant.Announcement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range a.Cameras {
		camera := &a.Cameras[i]
		if len(camera.Labels) == 0 {
			continue // nothing is counted
		}
		for _, label := range countLabels(a.CountedLabels(camera)) {
			for _, key := range countsOf(camera, label) {
				o.initialCount(key)
			}
		}
		for _, line := range camera.Lines {
			o.initialCount(topicKey{kind: kindLine, camera: camera.Name, name: line})
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
func (o *outbox) initialCount(key topicKey) {
	if o.mailboxes[key] != nil {
		return // the frame loop is about to publish a value, if it has not yet
	}
	value := "0"
	switch key.kind {
	case kindLine, kindLineLabel:
		value = noCrossings
	case kindCount, kindZone:
		if o.frigate != "" {
			frigate := key
			frigate.kind = kindFrigateCount
			if key.kind == kindZone {
				frigate.kind = kindFrigateZone
			}
			o.initialCount(frigate)
		}
	}
	o.change(key, value)
}
