package mqtt

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

func frame(camera string, sequence uint64) *payload.Detections {
	return &payload.Detections{
		Camera: camera, Sequence: sequence, Time: time.Date(2026, 11, 20, 10, 11, 12, 345678901, time.UTC), Width: 1920, Height: 1080,
		Latency: 9400 * time.Microsecond,
		Objects: []payload.Detection{{Label: "person", Score: 0.914, Box: [4]float64{412, 88.5, 655.2, 690.1}, Track: 17}},
	}
}

// send publishes a frame's detections.
func send(c *Client, d *payload.Detections) {
	c.Detections(d.Camera, d.AppendJSON(nil, c.Device))
}

func TestEveryFrameArrives(t *testing.T) {
	mqtttest.NoLeaks(t)
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	c := testClient(broker.URL())
	stop := start(t, c)
	sub.WaitLast(t, "edge-infer/gate/available", "online")
	for i := range 100 {
		send(c, frame("cam0", uint64(i)))
		require.Eventually(t, func() bool { return c.Accounting().Detections.Queued == 0 }, mqtttest.Patience, 50*time.Microsecond)
	}
	c.Status(&payload.Status{Version: "1.0", Cameras: []payload.CameraStatus{{Name: "cam0", State: "running"}}})
	c.Count("cam0", "person", 3)
	c.Line("cam0", "door", 4, 2)
	id := c.Event(&payload.Event{Type: "new", Camera: "cam0", Label: "person", Time: time.Now()})
	topic := "edge-infer/gate/cam0/detections"
	require.Eventually(t, func() bool { return len(sub.Messages(topic)) == 100 }, mqtttest.Patience, time.Millisecond)
	for i, payload := range sub.Messages(topic) {
		assert.Contains(t, payload, fmt.Sprintf(`"seq":%d,"time":"2026-11-20T10:11:12.345678Z"`, i))
	}
	assert.Equal(t, `{"v":1,"device":"gate","camera":"cam0","seq":99,"time":"2026-11-20T10:11:12.345678Z","width":1920,"height":1080,"latency_ms":9.4,`+
		`"detections":[{"label":"person","class":0,"score":0.914,"box":[412,88.5,655.2,690.1],"track":17}]}`, sub.Last(topic))
	sub.WaitLast(t, "edge-infer/gate/cam0/count/person", "3")
	sub.WaitLast(t, "edge-infer/gate/cam0/line/door", `{"in":4,"out":2}`)
	require.Eventually(t, func() bool { return len(sub.Messages("edge-infer/gate/cam0/events")) == 1 }, mqtttest.Patience, time.Millisecond)
	assert.Contains(t, sub.Last("edge-infer/gate/cam0/events"), `"id":"`+id+`"`)
	require.Eventually(t, func() bool { a := c.Accounting(); return a.State.Queued+a.Events.Queued == 0 }, mqtttest.Patience, time.Millisecond)
	a := balanced(t, c)
	assert.Equal(t, ledger.Account{Offered: 100, Delivered: 100}, a.Detections)
	assert.Equal(t, ledger.Account{Offered: 3, Delivered: 3}, a.State)
	assert.Equal(t, ledger.Account{Offered: 1, Delivered: 1}, a.Events)
	assert.Less(t, stop(), unhindered)
	sub.WaitLast(t, "edge-infer/gate/available", "stopped")
	sub.Client.Disconnect(10)
	broker.Close()
}

func TestOpenRefusesBadConfigurations(t *testing.T) {
	for _, c := range []struct {
		client *Client
		want   string
	}{
		{&Client{}, "open mqtt: device name is empty (set it, or give the machine a host name)"},
		{&Client{Device: "a/b"}, `open mqtt: device name "a/b" cannot be a topic level (leave out + / # and a leading $)`},
		{&Client{Device: "a"}, "open mqtt: no broker address"},
		{
			&Client{Device: "a", Link: Link{Access: Access{Brokers: []string{"http://x"}}}},
			`open mqtt: broker "http://x": unknown scheme "http" (use tcp, tls, ws or wss)`,
		},
		{
			&Client{Device: "a", DiscoveryPrefix: "ha/#", Link: Link{Access: Access{Brokers: []string{"x"}}}},
			`open mqtt: discovery prefix "ha/#" cannot start a topic (leave out + and #)`,
		},
		{
			&Client{Device: "a", Link: Link{Access: Access{Brokers: []string{"x"}, TLS: credentials.TLS{CAFile: "/nowhere/ca"}}}},
			"open mqtt: read CA certificates: open /nowhere/ca: no such file or directory",
		},
		{
			&Client{Device: "a", Link: Link{Access: Access{Brokers: []string{"x"}, TLS: credentials.TLS{CAFile: "client_test.go"}}}},
			"open mqtt: read CA certificates client_test.go: no PEM certificate in it",
		},
		{
			&Client{Device: "a", Link: Link{Access: Access{Brokers: []string{"x"}, PasswordFile: "/nowhere/p"}}},
			"open mqtt: read password file: open /nowhere/p: no such file or directory",
		},
		{
			&Client{Device: "a", Link: Link{Access: Access{Brokers: []string{"x"}, TLS: credentials.TLS{KeyFile: "k"}}}},
			"open mqtt: a client certificate needs its key: name both files or neither",
		},
	} {
		assert.EqualError(t, c.client.Open(), c.want)
		assert.NoError(t, c.client.Close())
	}
}

func TestClientLifecycle(t *testing.T) {
	mqtttest.NoLeaks(t)
	var c Client
	assert.EqualError(t, c.Run(t.Context()), "run mqtt: client is not open")
	assert.NoError(t, c.Close())
	open := testClient("tcp://" + mqtttest.FreeAddress(t))
	require.NoError(t, open.Open())
	open.Event(&payload.Event{Type: "new", Camera: "cam0"})
	require.NoError(t, open.Sync())
	require.NoError(t, open.Close())
	require.NoError(t, open.Close())
	assert.EqualError(t, open.Run(t.Context()), "run mqtt: client is not open")
	assert.ErrorIs(t, open.Sync(), os.ErrClosed)
	open.Event(&payload.Event{Type: "new", Camera: "cam0"})
	send(open, frame("cam0", 1))
	assert.Equal(t, ledger.Account{Offered: 2, Dropped: 2}, balanced(t, open).Events)
}

func TestRunEndsWithItsContext(t *testing.T) {
	mqtttest.NoLeaks(t)
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	c := testClient(broker.URL())
	require.NoError(t, c.Open())
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	sub.WaitLast(t, "edge-infer/gate/available", "online")
	begin := time.Now()
	c.Event(&payload.Event{Type: "end", Camera: "cam0"}) // the last words are sent
	cancel()
	require.NoError(t, <-done)
	assert.Less(t, time.Since(begin), unhindered)
	sub.WaitLast(t, "edge-infer/gate/available", "stopped")
	require.Eventually(t, func() bool { return len(sub.Messages("edge-infer/gate/cam0/events")) == 1 }, mqtttest.Patience, time.Millisecond)
	sub.Client.Disconnect(10)
	broker.Close()
}

func TestBrokersAreTriedInOrder(t *testing.T) {
	second := startBroker(t, "")
	firstAddress := mqtttest.FreeAddress(t)
	log := &mqtttest.Journal{}
	c := testClient("tcp://"+firstAddress, second.URL())
	c.Logger = log.Logger()
	start(t, c)
	waitConnected(t, c)
	assert.Equal(t, second.URL(), c.Connection().Broker)
	first := startBroker(t, firstAddress)
	second.Close()
	require.Eventually(t, func() bool { s := c.Connection(); return s.Connected && s.Broker == first.URL() }, mqtttest.Patience,
		time.Millisecond)
	first.Close()
	require.Eventually(t, func() bool { return !c.Connection().Connected }, mqtttest.Patience, time.Millisecond)
	time.Sleep(8 * c.RetryMax)
	lines := strings.Count(log.String(), "level=WARN")
	assert.LessOrEqual(t, lines, 10, "a reason is logged once for each broker:\n%s", log)
}

func TestRefusedLoginIsNotHammered(t *testing.T) {
	b := &embedded.Broker{Address: "127.0.0.1:0", User: "edge", Password: "right", Logger: mqtttest.Discard()}
	require.NoError(t, b.Open())
	defer b.Close()
	other := startBroker(t, "")
	c := testClient(b.URL(), other.URL())
	c.RefusedRetry = time.Hour
	start(t, c)
	waitConnected(t, c)
	assert.Equal(t, other.URL(), c.Connection().Broker)
	alone := testClient(b.URL())
	alone.RefusedRetry = time.Hour
	log := &mqtttest.Journal{}
	alone.Logger = log.Logger()
	stop := start(t, alone)
	require.Eventually(t, func() bool { return alone.Connection().Error != "" }, mqtttest.Patience, time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	assert.Equal(t, 1, strings.Count(log.String(), "mqtt cannot connect"))
	assert.Less(t, stop(), unhindered)
}

func TestStateComesBackAfterBrokerRestart(t *testing.T) {
	broker := startBroker(t, "")
	broker.Address = broker.Addr()
	c := testClient(broker.URL())
	start(t, c)
	waitConnected(t, c)
	c.Count("cam0", "person", 4)
	c.Snapshot("cam0", "person", []byte("\xff\xd8jpeg"))
	require.Eventually(t, func() bool { return c.Accounting().State.Queued == 0 }, mqtttest.Patience, time.Millisecond)
	require.NoError(t, broker.Close())
	require.NoError(t, broker.Open())
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	sub.WaitLast(t, "edge-infer/gate/available", "online")
	sub.WaitLast(t, "edge-infer/gate/cam0/count/person", "4")
	sub.WaitLast(t, "edge-infer/gate/cam0/snapshot/person", "\xff\xd8jpeg")
	assert.Equal(t, ledger.Account{Offered: 2, Delivered: 2}, balanced(t, c).State)
}

func TestDetectionsRateLimit(t *testing.T) {
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	c := testClient(broker.URL())
	c.DetectionsInterval = 100 * time.Millisecond
	start(t, c)
	waitConnected(t, c)
	begin := time.Now()
	for i := range 200 {
		send(c, frame("cam0", uint64(i)))
		time.Sleep(time.Millisecond)
	}
	topic := "edge-infer/gate/cam0/detections"
	require.Eventually(t, func() bool { return strings.Contains(sub.Last(topic), `"seq":199,`) }, mqtttest.Patience, time.Millisecond)
	assert.LessOrEqual(t, len(sub.Messages(topic)), 2+int(time.Since(begin)/c.DetectionsInterval))
	require.Eventually(t, func() bool { return c.Accounting().Detections.Queued == 0 }, mqtttest.Patience, time.Millisecond)
	assert.Equal(t, uint64(len(sub.Messages(topic))), balanced(t, c).Detections.Delivered)
}

func TestDefaultClientID(t *testing.T) {
	assert.Equal(t, defaultClientID("gate"), defaultClientID("gate"))
	assert.NotEqual(t, defaultClientID("gate"), defaultClientID("gate2"))
	assert.Regexp(t, `^edge-infer-gate-[0-9a-f]{8}$`, defaultClientID("gate"))
}

// TestLongQueueDoesNotDelayTheEnd stops in the middle of a replay: stopped must still be said, and nothing is lost.
func TestLongQueueDoesNotDelayTheEnd(t *testing.T) {
	mqtttest.NoLeaks(t)
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#")
	c := testClient(broker.URL())
	c.Spool.Directory = t.TempDir()
	c.Window = 1
	require.NoError(t, c.Open())
	const events = 30_000
	for range events {
		c.Event(&payload.Event{Type: "update", Camera: "cam0"})
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(context.Background()) }()
	waitConnected(t, c)
	begin := time.Now()
	require.NoError(t, c.Close())
	require.NoError(t, <-done)
	assert.Less(t, time.Since(begin), unhindered)
	sub.WaitLast(t, "edge-infer/gate/available", "stopped")
	a := balanced(t, c)
	assert.NotZero(t, a.Events.Queued, "it did not wait for the queue")
	again := testClient(broker.URL())
	again.Spool.Directory = c.Spool.Directory
	require.NoError(t, again.Open())
	assert.Equal(t, a.Events.Queued, balanced(t, again).Events.Queued)
	require.NoError(t, again.Close())
	sub.Client.Disconnect(10)
	broker.Close()
}

func TestLoginInTheAddress(t *testing.T) {
	b := &embedded.Broker{Address: "127.0.0.1:0", User: "edge", Password: "right", Logger: mqtttest.Discard()}
	require.NoError(t, b.Open())
	defer b.Close()
	for _, c := range []*Client{
		{Link: Link{Access: Access{Brokers: []string{"tcp://edge:right@" + b.Addr()}, User: "other", Password: "wrong"}}},
		{Link: Link{Access: Access{Brokers: []string{"tcp://edge@" + b.Addr()}, User: "other", Password: "right"}}},
		{Link: Link{Access: Access{Brokers: []string{"tcp://" + b.Addr()}, User: "edge", Password: "right"}}},
	} {
		c.Device, c.Logger = "gate", mqtttest.Discard()
		stop := start(t, c)
		waitConnected(t, c)
		stop()
	}
}
