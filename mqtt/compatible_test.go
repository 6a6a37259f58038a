package mqtt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Other programs' topics go with a camera and a zone as this program's own do.
func TestCompatibleTopics(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "cctv/#", "ds/#")
	c := testClient(broker.URL())
	c.Frigate, c.DeepStream = "cctv/frigate", "ds/detections"
	start(t, c)
	waitConnected(t, c)
	now := payload.Tracked{Object: "1.5-1", Camera: "gate", Label: "person", Time: time.Unix(2e9, 0), Start: time.Unix(2e9, 0)}
	c.FrigateEvent("new", &now, &now)
	c.Count("gate", "person", 2)
	c.Zone("gate", "yard", "person", 1)
	c.Snapshot("gate", "person", []byte("jpeg"))
	c.DeepStreamFrame("gate", []byte(`{"version":"4.0"}`))
	for topic, want := range map[string]string{
		"cctv/frigate/events": string(payload.AppendFrigate(nil, "new", &now, &now)), "cctv/frigate/gate/person": "2",
		"cctv/frigate/yard/person": "1", "cctv/frigate/gate/person/snapshot": "jpeg", "ds/detections": `{"version":"4.0"}`,
	} {
		sub.WaitLast(t, topic, want)
	}
	c.Available("gate", false)
	sub.WaitLast(t, "cctv/frigate/gate/person", "0")
	sub.WaitLast(t, "cctv/frigate/yard/person", "0")
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{{Name: "gate"}}}))
	sub.WaitLast(t, "cctv/frigate/yard/person", "")
	require.NoError(t, c.Announce(&homeassistant.Announcement{}))
	sub.WaitLast(t, "cctv/frigate/gate/person", "")
	sub.WaitLast(t, "cctv/frigate/gate/person/snapshot", "")
}

func TestWithoutCompatibleTopicsThereAreNone(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "#")
	c := testClient(broker.URL())
	start(t, c)
	waitConnected(t, c)
	c.Count("gate", "person", 2)
	c.Zone("gate", "yard", "person", 1)
	c.Snapshot("gate", "person", []byte("jpeg"))
	c.RequestedSnapshot("gate", []byte("whole"))
	c.Image("gate", []byte("scene"))
	sub.WaitLast(t, "edge-infer/gate/gate/snapshot/person", "jpeg")
	sub.WaitLast(t, "edge-infer/gate/gate/snapshot", "whole")
	sub.WaitLast(t, "edge-infer/gate/gate/image", "scene")
	for _, m := range sub.All() {
		assert.Regexp(t, "^edge-infer/", m.Topic)
	}
}
