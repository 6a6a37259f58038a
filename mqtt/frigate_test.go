package mqtt

import (
	"slices"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// TestFrigateAvailable: whoever reads Frigate's topics is told that the client is there, that its connection is gone, also when it is only
// the one that has the will, that it is back, and that it has ended.
func TestFrigateAvailable(t *testing.T) {
	mqtttest.NoLeaks(t)
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	sub := m.Listen("frigate/available")
	c := testClient("tcp://" + m.Address)
	c.Frigate = "frigate"
	stop := start(t, c)
	sub.WaitLast(t, "frigate/available", "online")
	said := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			p := sub.Payloads("frigate/available")
			return len(p) >= n && p[len(p)-1] == "online"
		}, mqtttest.Patience, 10*time.Millisecond, "%q", sub.Payloads("frigate/available"))
	}
	for i, identity := range []string{c.ClientID + "-frigate", c.ClientID} {
		intruder := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + m.Address).SetClientID(identity).SetAutoReconnect(false))
		intruder.Connect().WaitTimeout(mqtttest.Patience) // a second client of that name ends the connection of the first one
		intruder.Disconnect(10)
		said(3 + 2*i)
		require.Equal(t, i+1, count(sub.Payloads("frigate/available"), "offline"), "%q", sub.Payloads("frigate/available"))
	}
	assert.Less(t, stop(), unhindered)
	sub.WaitLast(t, "frigate/available", "stopped")
}

func count(list []string, wanted string) int {
	return len(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s != wanted }))
}

// Commands in Frigate's topics do what those of the client's own do, and both say what is in force.
func TestFrigateControl(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "#")
	r := &recorder{}
	c := testClient(broker.URL())
	c.Controller, c.Frigate = r, "frigate"
	start(t, c)
	waitConnected(t, c)
	c.Settings("cam/0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	sub.WaitLast(t, "frigate/cam%2F0/detect/state", "ON")
	for _, value := range []string{"OFF", "ON"} {
		require.Eventually(t, func() bool { // until the subscription is there
			sub.Client.Publish("frigate/cam%2F0/detect/set", 1, false, value).WaitTimeout(mqtttest.Patience)
			return sub.Last("frigate/cam%2F0/detect/state") == value
		}, mqtttest.Patience, 20*time.Millisecond)
		sub.WaitLast(t, "edge-infer/gate/cam%2F0/detect/state", value)
	}
	assert.Contains(t, r.all(), "detect cam/0 false")
	sub.Client.Publish("edge-infer/gate/cam%2F0/detect/set", 1, false, "OFF").WaitTimeout(mqtttest.Patience)
	sub.WaitLast(t, "frigate/cam%2F0/detect/state", "OFF")
	sub.Client.Publish("frigate/elsewhere/detect/set", 1, false, "OFF").WaitTimeout(mqtttest.Patience)
	require.Eventually(t, func() bool { return sub.Last("edge-infer/gate/error") != "" }, mqtttest.Patience, 10*time.Millisecond)
	assert.Contains(t, sub.Last("edge-infer/gate/error"), "unknown camera")
	for _, m := range sub.All() {
		assert.NotContains(t, []string{"frigate/cam%2F0/threshold/state", "frigate/cam%2F0/interval/state"}, m.Topic)
	}
}

// What moves, and whether there are images, as Frigate tells it; both end with the camera's images.
func TestFrigateActiveAndStatus(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "frigate/#")
	c := testClient(broker.URL())
	c.Frigate = "frigate"
	start(t, c)
	waitConnected(t, c)
	c.Available("gate", true)
	c.FrigateActive("gate", "", "person", 2)
	c.FrigateActive("gate", "yard", "person", 1)
	c.Stats(&payload.Stats{Started: time.Now(), Engine: 4 * time.Millisecond, Cameras: []payload.CameraStats{
		{Name: "gate", Captured: 30, Inferred: 20, DroppedMotion: 4, DroppedNewer: 6}, {Name: "yard", Captured: 10, Inferred: 10},
	}})
	for topic, want := range map[string]string{
		"status/detect": "online", "person/active": "2",
	} {
		sub.WaitLast(t, "frigate/gate/"+topic, want)
	}
	sub.WaitLast(t, "frigate/yard/person/active", "1")
	require.Eventually(t, func() bool { return sub.Last("frigate/stats") != "" }, mqtttest.Patience, 10*time.Millisecond)
	c.Available("gate", false)
	for topic, want := range map[string]string{"gate/status/detect": "offline", "gate/person/active": "0", "yard/person/active": "0"} {
		sub.WaitLast(t, "frigate/"+topic, want)
	}
}
