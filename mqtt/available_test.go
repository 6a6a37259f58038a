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

func TestACameraThatIsGoneLeavesNoCounts(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	sub := m.Listen("edge-infer/#")
	c := testClient("tcp://" + m.Address)
	start(t, c)
	c.Available("front", true)
	c.Available("back", true)
	c.Count("front", "person", 4)
	c.Count("front", "all", 4)
	c.Zone("front", "yard", "person", 2)
	c.Line("front", "door", 4, 2)
	c.Count("back", "person", 3)
	c.Count("front", "dog", 0)
	waitDelivered(t, c)
	offered := c.Accounting().State.Offered
	c.Available("front", true)
	assert.Equal(t, offered, c.Accounting().State.Offered, "what is known is not said again")

	c.Available("front", false)
	assert.Equal(t, offered+4, c.Accounting().State.Offered, "the state, two counts and a zone; no more")
	for topic, want := range map[string]string{
		"front/available": "offline", "front/count/person": "0", "front/count/all": "0", "front/zone/yard/person": "0",
		"front/line/door": `{"in":4,"out":2}`,
		"back/available":  "online", "back/count/person": "3", "front/count/dog": "0",
	} {
		sub.WaitLast(t, "edge-infer/gate/"+topic, want)
	}
	c.Available("front", false)
	assert.Equal(t, offered+4, c.Accounting().State.Offered)
	c.Available("front", true)
	c.Count("front", "person", 1)
	sub.WaitLast(t, "edge-infer/gate/front/available", "online")
	sub.WaitLast(t, "edge-infer/gate/front/count/person", "1")

	// It is retained, and repeated for a broker that has forgotten it.
	m.Kill()
	require.Eventually(t, func() bool { return !c.Connection().Connected }, mqtttest.Patience, time.Millisecond)
	c.Available("front", false)
	m.Start()
	waitConnected(t, c)
	again := m.Listen("edge-infer/#")
	again.WaitLast(t, "edge-infer/gate/front/available", "offline")
	again.WaitLast(t, "edge-infer/gate/front/count/person", "0")
	again.WaitLast(t, "edge-infer/gate/back/available", "online")

	// With the camera its topic goes.
	require.NoError(t, c.Announce(&homeassistant.Announcement{Cameras: []homeassistant.Camera{{Name: "back"}}}))
	again.WaitLast(t, "edge-infer/gate/front/available", "(null)")
	balanced(t, c)
}

func TestHealth(t *testing.T) {
	broker := startBroker(t, "")
	broker.Address = broker.Addr()
	c := testClient(broker.URL())
	start(t, c)
	waitConnected(t, c)
	c.Event(&payload.Event{Type: "new", Camera: "cam0"})
	require.Eventually(t, func() bool { return c.Accounting().Events.Delivered == 1 }, mqtttest.Patience, time.Millisecond)
	require.NoError(t, broker.Close())
	require.Eventually(t, func() bool { return !c.Connection().Connected }, mqtttest.Patience, time.Millisecond)
	c.Event(&payload.Event{Type: "new", Camera: "cam0"})
	h := c.Health()
	assert.False(t, h.Connection.Connected)
	assert.Equal(t, uint64(1), h.Connects)
	assert.Equal(t, 1, h.Events.Messages)
	assert.Positive(t, h.Events.Bytes)
	require.NoError(t, broker.Open())
	require.Eventually(t, func() bool { return c.Accounting().Events.Delivered == 2 }, mqtttest.Patience, time.Millisecond)
	h = c.Health()
	assert.Equal(t, uint64(2), h.Connects)
	assert.Zero(t, h.Repeats)
	assert.Greater(t, h.Largest, 50)
	assert.Equal(t, c.Accounting(), h.Accounting)
}

// TestRepeatsAreCounted has a broker that acknowledges nothing and drops the connection.
func TestRepeatsAreCounted(t *testing.T) {
	c := testClient(stallingBroker(t, true))
	c.AckTimeout = 50 * time.Millisecond
	start(t, c)
	c.Event(&payload.Event{Type: "new", Camera: "cam0"})
	require.Eventually(t, func() bool { return c.Health().Repeats >= 2 }, mqtttest.Patience, time.Millisecond)
}
