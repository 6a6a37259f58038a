package mqtt

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// TestReconnectLosesNothing moves a client between two brokers, over and over, while events are published. Every event arrives, once unless
// the client says that it repeated some; retained values are at the newest broker, and nothing stays behind.
func TestReconnectLosesNothing(t *testing.T) {
	one, two := startBroker(t, ""), startBroker(t, "")
	subscribers := []*mqtttest.Subscriber{
		mqtttest.Subscribe(t, one.URL(), "edge-infer/gate/#"), mqtttest.Subscribe(t, two.URL(), "edge-infer/gate/#"),
	}
	mqtttest.NoLeaks(t)
	c := testClient(one.URL())
	stop := start(t, c)
	waitConnected(t, c)
	c.Count("cam0", "person", 3)

	var published sync.WaitGroup
	var ending atomic.Bool
	var events atomic.Int64
	var ids []string
	published.Go(func() {
		for !ending.Load() {
			ids = append(ids, c.Event(&payload.Event{Camera: "cam0", Type: "new", Object: "o", Label: "person", Time: time.Now()}))
			events.Add(1)
			time.Sleep(100 * time.Microsecond)
		}
	})
	const moves = 50
	for move := range moves {
		next := []string{two.URL(), one.URL()}[move%2]
		require.NoError(t, c.Reconnect(t.Context(), func() Access { return Access{Brokers: []string{next}} }))
		if move%3 == 0 { // it is moved while it connects
			continue
		}
		before := events.Load()
		require.Eventually(t, func() bool { return events.Load() > before+10 && c.Connection().Connected }, mqtttest.Patience, time.Millisecond)
	}
	waitConnected(t, c)
	assert.Contains(t, "tcp://"+one.Addr(), c.Connection().Broker)
	subscribers[0].WaitLast(t, "edge-infer/gate/available", "online")
	subscribers[1].WaitLast(t, "edge-infer/gate/available", "stopped")
	subscribers[0].WaitLast(t, "edge-infer/gate/cam0/count/person", "3")
	ending.Store(true)
	published.Wait()
	require.Eventually(t, func() bool { return c.Accounting().Events.Queued == 0 }, mqtttest.Patience, 5*time.Millisecond)
	assert.EqualValues(t, len(ids), balanced(t, c).Events.Delivered)
	assert.Less(t, stop(), unhindered)

	count := func() (distinct, all int) {
		seen := map[string]bool{}
		for _, s := range subscribers {
			for _, text := range s.Messages("edge-infer/gate/cam0/events") {
				var event struct{ ID string }
				require.NoError(t, json.Unmarshal([]byte(text), &event), text)
				require.True(t, slices.Contains(ids, event.ID))
				seen[event.ID] = true
				all++
			}
		}
		return len(seen), all
	}
	require.Eventually(t, func() bool {
		distinct, _ := count()
		return distinct == len(ids)
	}, mqtttest.Patience, 20*time.Millisecond)
	distinct, all := count()
	assert.LessOrEqual(t, uint64(all-distinct), c.Health().Repeats)
	t.Logf("%d events, %d repeats, %d connections", len(ids), c.Health().Repeats, c.Health().Connects)
}

// TestReconnectWithoutAnEnd: a client that is closed, and one whose Run was not called, keep nobody waiting.
func TestReconnectWithoutAnEnd(t *testing.T) {
	mqtttest.NoLeaks(t)
	c := testClient("tcp://127.0.0.1:1")
	require.NoError(t, c.Open())
	unused := func() Access { t.Error("the access is not asked for"); return Access{} }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Reconnect(ctx, unused), context.Canceled)
	require.NoError(t, c.Close())
	require.EqualError(t, c.Reconnect(t.Context(), unused), "reconnect mqtt: client is closed")
}

// TestReconnectKeepsTheAccessAfterAnError: an address that cannot be read changes nothing.
func TestReconnectKeepsTheAccessAfterAnError(t *testing.T) {
	b := startBroker(t, "")
	c := testClient(b.URL())
	start(t, c)
	waitConnected(t, c)
	for range 3 {
		err := c.Reconnect(t.Context(), func() Access { return Access{Brokers: []string{"http://x"}} })
		require.ErrorContains(t, errors.Unwrap(err), "http://x")
	}
	require.Eventually(t, func() bool { return c.Health().Connects > 1 }, mqtttest.Patience, time.Millisecond)
	assert.Contains(t, b.URL(), c.Connection().Broker)
}
