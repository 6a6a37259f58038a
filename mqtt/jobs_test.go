package mqtt

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// TestJobsAreRetained: a device gets its job at each connection, and what it says of it can be removed.
func TestJobsAreRetained(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/gate/jobs/#")
	publish := func(message string) {
		require.True(t, sub.Client.Publish("edge-infer/gate/jobs/notify-next", 1, true, message).WaitTimeout(mqtttest.Patience))
	}
	publish("first")
	var mu sync.Mutex
	var got []string
	c := testClient(broker.URL())
	c.Controller = &recorder{}
	c.Jobs = func(message []byte) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(message))
	}
	start(t, c)
	received := func(want ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return assert.ObjectsAreEqual(want, got)
		}, mqtttest.Patience, time.Millisecond)
	}
	received("first")
	publish("second")
	received("first", "second")
	publish("")
	received("first", "second", "")
	c.Job("one", []byte("half"))
	c.Job("one", []byte("done"))
	require.Eventually(t, func() bool { return sub.Last("edge-infer/gate/jobs/one/update") == "done" }, mqtttest.Patience, time.Millisecond)
	late := mqtttest.Subscribe(t, broker.URL(), "edge-infer/gate/jobs/#")
	require.Eventually(t, func() bool { return len(late.All()) == 1 }, mqtttest.Patience, time.Millisecond)
	c.Job("one", nil) // nobody asks for it any more
	require.Eventually(t, func() bool { return late.Last("edge-infer/gate/jobs/one/update") == "" }, mqtttest.Patience, time.Millisecond)
}
