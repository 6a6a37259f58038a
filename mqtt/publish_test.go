package mqtt

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

func TestDetectionsHandOffDoesNotAllocate(t *testing.T) {
	c := testClient("tcp://127.0.0.1:1")
	require.NoError(t, c.Open())
	defer c.Close()
	d := frame("cam0", 1)
	json := d.AppendJSON(nil, "gate")
	c.Detections("cam0", json)
	c.Detections("cam0", json)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		json = d.AppendJSON(json[:0], "gate")
		c.Detections("cam0", json)
	}))
}

// TestCountsThatFlicker: of what changes within the interval, the broker gets the first object at once and the last value at the end.
func TestCountsThatFlicker(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	sub := mqtttest.Subscribe(t, "tcp://"+m.Address, "edge-infer/gate/cam0/#", "frigate/#")
	c := testClient("tcp://" + m.Address)
	c.CountInterval, c.Frigate = time.Hour, "frigate"
	stop := start(t, c)
	c.Count("cam0", "person", 0)
	waitDelivered(t, c)
	c.Count("cam0", "person", 1)
	c.Line("cam0", "door", 1, 0)
	c.Snapshot("cam0", "person", []byte("first"))
	waitDelivered(t, c)
	for range 50 {
		c.Count("cam0", "person", 2)
		c.Count("cam0", "person", 3)
	}
	c.Line("cam0", "door", 2, 0)
	c.Line("cam0", "door", 3, 0)
	c.Snapshot("cam0", "person", []byte("better"))
	c.Snapshot("cam0", "person", []byte("best"))
	balanced(t, c)
	stop()
	for topic, want := range map[string][]string{
		"edge-infer/gate/cam0/count/person":    {"0", "1", "3"},
		"frigate/cam0/person":                  {"0", "1", "3"},
		"edge-infer/gate/cam0/line/door":       {`{"in":1,"out":0}`, `{"in":3,"out":0}`},
		"edge-infer/gate/cam0/snapshot/person": {"first", "best"},
	} {
		sub.WaitLast(t, topic, want[len(want)-1])
		assert.Equal(t, want, sub.Messages(topic), topic)
	}
}

func TestTooManyTopics(t *testing.T) {
	c := testClient("tcp://127.0.0.1:1")
	require.NoError(t, c.Open())
	defer c.Close()
	for i := range topicLimit + 10 {
		c.Count("cam0", fmt.Sprint(i), i)
	}
	a := balanced(t, c)
	assert.Equal(t, ledger.Account{Offered: topicLimit + 10, Dropped: 10, Queued: topicLimit}, a.State)
	c.Status(&payload.Status{})
	assert.Equal(t, uint64(topicLimit+1), balanced(t, c).State.Queued, "the device's own topics always have room")
}
