package mqtt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// TestCountsHaveAValueFromTheStart: Home Assistant would show "unknown" until the first object enters a zone or crosses a line.
func TestCountsHaveAValueFromTheStart(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	c := testClient("tcp://" + m.Address)
	c.Frigate = "frigate"
	start(t, c)
	camera := frontCamera
	camera.Seen = []string{"person"}
	c.Zone("front", "drive", "person", 2)
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{camera}}))
	waitDelivered(t, c)
	sub := mqtttest.Subscribe(t, "tcp://"+m.Address, "edge-infer/gate/front/#", "frigate/#")
	for topic, want := range map[string]string{
		"edge-infer/gate/front/count/all":         "0",
		"edge-infer/gate/front/count/person":      "0",
		"edge-infer/gate/front/zone/yard/all":     "0",
		"edge-infer/gate/front/zone/yard/person":  "0",
		"edge-infer/gate/front/zone/drive/person": "2",
		"edge-infer/gate/front/line/door":         `{"in":0,"out":0}`,
		"frigate/front/person":                    "0",
		"frigate/yard/person":                     "0",
		"frigate/drive/person":                    "2",
	} {
		sub.WaitLast(t, topic, want)
	}
}

// TestCountsOfAKilledProcessAreReset: nobody is there any more, so no new count would replace those that the broker retains.
func TestCountsOfAKilledProcessAreReset(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	leave(t, m, frontCamera)
	c := testClient("tcp://" + m.Address)
	require.NoError(t, c.Open())
	c.Zone("front", "drive", "person", 2)
	begin(t, c)
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{frontCamera}}))
	looked(t, c)
	waitDelivered(t, c)
	sub := mqtttest.Subscribe(t, "tcp://"+m.Address, "edge-infer/gate/front/#")
	for topic, want := range map[string]string{
		"edge-infer/gate/front/count/person":      "0",
		"edge-infer/gate/front/zone/yard/person":  "0",
		"edge-infer/gate/front/zone/drive/person": "2",
		"edge-infer/gate/front/line/door":         `{"in":0,"out":0}`,
		"edge-infer/gate/front/line/door/person":  `{"in":0,"out":0}`,
		"edge-infer/gate/front/threshold/state":   "0.25",
	} {
		sub.WaitLast(t, topic, want)
	}
}
