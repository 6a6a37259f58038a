package broker

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// persistent connects a client whose session stays, and subscribes.
func persistent(t *testing.T, b *Broker, id, filter string) paho.Client {
	t.Helper()
	c := paho.NewClient(paho.NewClientOptions().AddBroker(b.URL()).SetClientID(id).SetCleanSession(false).SetAutoReconnect(false))
	require.True(t, c.Connect().WaitTimeout(mqtttest.Patience))
	require.True(t, c.Subscribe(filter, 1, func(paho.Client, paho.Message) {}).WaitTimeout(mqtttest.Patience))
	return c
}

// TestStoredSessionsShareTheQueue: the session with the most queued bytes is removed, the others keep their messages.
func TestStoredSessionsShareTheQueue(t *testing.T) {
	log := &mqtttest.Journal{}
	b := open(t, &Broker{Logger: log.Logger(), Limits: Limits{Queued: 1 << 20}})
	persistent(t, b, "owner", "events").Disconnect(10)
	for i := range 4 {
		persistent(t, b, fmt.Sprint("greedy", i), "flood/#").Disconnect(10)
	}
	sender := mqtttest.Subscribe(t, b.URL(), "nothing")
	publish := func(topic string, size int) {
		require.True(t, sender.Client.Publish(topic, 1, false, strings.Repeat("x", size)).WaitTimeout(mqtttest.Patience))
	}
	const events = 20
	for range events {
		publish("events", 100)
		for i := range 20 {
			publish(fmt.Sprint("flood/", i), 16<<10)
		}
	}
	stats := b.Stats()
	assert.LessOrEqual(t, stats.QueuedBytes, int64(1<<20))
	assert.EqualValues(t, 4, stats.RemovedSessions)
	require.Contains(t, log.String(), "too many bytes wait for clients")
	arrived := make(chan struct{}, events)
	c := paho.NewClient(paho.NewClientOptions().AddBroker(b.URL()).SetClientID("owner").SetCleanSession(false).
		SetDefaultPublishHandler(func(paho.Client, paho.Message) { arrived <- struct{}{} }))
	require.True(t, c.Connect().WaitTimeout(mqtttest.Patience))
	defer c.Disconnect(10)
	for range events {
		select {
		case <-arrived:
		case <-time.After(mqtttest.Patience):
			require.Fail(t, "the owner's events are gone")
		}
	}
	require.Eventually(t, func() bool { return b.Stats().QueuedBytes == 0 }, mqtttest.Patience, time.Millisecond, "all are acknowledged")
}

// TestABlockedConnectionIsClosed: what is published for a client that does not read is not kept for long.
func TestABlockedConnectionIsClosed(t *testing.T) {
	log := &mqtttest.Journal{}
	b := open(t, &Broker{Logger: log.Logger(), Limits: Limits{Queued: 1 << 20, Write: time.Hour}})
	conn := dial(t, b, login(4, "blocked"))
	_, err := io.ReadFull(conn, make([]byte, 4))
	require.NoError(t, err)
	_, err = conn.Write([]byte{0x82, 6, 0, 1, 0, 1, '#', 0}) // QoS 0
	require.NoError(t, err)
	sender := mqtttest.Subscribe(t, b.URL(), "nothing")
	for begun := time.Now(); !strings.Contains(log.String(), "client does not read"); {
		require.Less(t, time.Since(begun), mqtttest.Patience)
		require.True(t, sender.Client.Publish("flood", 1, false, make([]byte, 64<<10)).WaitTimeout(mqtttest.Patience))
	}
	serves(t, b)
}

// TestUndeliveredMessagesAreCounted: what a client that does not read has missed is known, also with QoS 0.
func TestUndeliveredMessagesAreCounted(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Queued: 256 << 20, Write: time.Hour}})
	conn := dial(t, b, login(4, "slow"))
	_, err := io.ReadFull(conn, make([]byte, 4))
	require.NoError(t, err)
	_, err = conn.Write([]byte{0x82, 6, 0, 1, 0, 1, '#', 0}) // QoS 0
	require.NoError(t, err)
	sender := mqtttest.Subscribe(t, b.URL(), "nothing")
	require.Zero(t, b.Stats().Undelivered)
	for begun := time.Now(); b.Stats().Undelivered == 0; {
		require.Less(t, time.Since(begun), mqtttest.Patience)
		require.True(t, sender.Client.Publish("flood", 1, false, make([]byte, 4<<10)).WaitTimeout(mqtttest.Patience))
	}
}
