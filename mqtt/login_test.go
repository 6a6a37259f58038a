package mqtt

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

func TestLogin(t *testing.T) {
	broker := &embedded.Broker{Address: "127.0.0.1:0", User: "edge", Password: "right", Logger: mqtttest.Discard()}
	require.NoError(t, broker.Open())
	t.Cleanup(func() { broker.Close() })
	away := "tcp://" + mqtttest.FreeAddress(t)

	c := testClient(broker.URL())
	c.Brokers, c.User, c.Password = []string{away, broker.URL()}, "edge", "wrong"
	require.NoError(t, c.Open())
	defer c.Close()
	logins := c.Login(t.Context())
	require.Len(t, logins, 2)
	assert.Equal(t, away, logins[0].Broker)
	assert.Contains(t, logins[0].Error, "connection refused")
	assert.Equal(t, "nothing listens there, check that the broker runs and the port", logins[0].Hint)
	assert.Equal(t, broker.URL(), logins[1].Broker)
	assert.NotEmpty(t, logins[1].Error)
	assert.Equal(t, "check user and password, and what the broker allows this client", logins[1].Hint)

	c.Password = "right"
	assert.Equal(t, Login{Broker: broker.URL()}, c.Login(t.Context())[1])
}

// The daemon that runs keeps its connection, and nobody hears of the test.
func TestLoginBesideTheDaemon(t *testing.T) {
	broker := startBroker(t, "")
	c := testClient(broker.URL())
	start(t, c)
	waitConnected(t, c)
	since := c.Connection().Since
	watch := mqtttest.Subscribe(t, broker.URL(), "#")
	watch.WaitLast(t, "edge-infer/"+c.Device+"/available", "online")

	other := testClient(broker.URL())
	require.NoError(t, other.Open())
	defer other.Close()
	assert.Equal(t, []Login{{Broker: broker.URL()}}, other.Login(t.Context()))
	assert.True(t, c.Connection().Connected)
	assert.Equal(t, since, c.Connection().Since)
	assert.Len(t, watch.All(), 1)
}

func TestLoginEndsWithItsContext(t *testing.T) {
	c := testClient("tcp://" + mqtttest.FreeAddress(t))
	require.NoError(t, c.Open())
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	assert.NotEmpty(t, c.Login(ctx)[0].Error)
}
