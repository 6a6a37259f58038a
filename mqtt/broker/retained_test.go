package broker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		filter, topic string
		want          bool
	}{
		{"#", "a/b", true},
		{"a/#", "a/b/c", true},
		{"a/#", "a", true},
		{"a/#", "ab", false},
		{"a/+", "a/b", true},
		{"a/+", "a/b/c", false},
		{"a/+", "a", false},
		{"a/+", "a/", true},
		{"+/+", "/b", true},
		{"+", "a", true},
		{"+", "a/b", false},
		{"a/+/c", "a/b/c", true},
		{"a/+/c", "a/b/d", false},
		{"a/+/#", "a/b", true},
		{"a/+/#", "a", false},
		{"#", "$SYS/x", false},
		{"+/x", "$SYS/x", false},
		{"$SYS/#", "$SYS/x", true},
	} {
		assert.Equal(t, c.want, matches(c.filter, c.topic), "%s %s", c.filter, c.topic)
	}
}

// A new subscription gets the retained messages that match it, with the retain flag and at most its QoS; live messages have no flag.
func TestRetainedMessagesAreDelivered(t *testing.T) {
	b := open(t, &Broker{})
	publisher := connect(t, b, "publisher")
	for i, topic := range []string{"a/b", "a/c", "a/b/d", "other"} {
		wait(t, publisher.Publish(topic, byte(i%3), true, topic))
	}
	wait(t, publisher.Publish("a/c", 1, true, "")) // removed
	for filter, want := range map[string][]string{
		"a/+": {"a/b"}, "a/#": {"a/b", "a/b/d"}, "#": {"a/b", "a/b/d", "other"}, "a/b": {"a/b"}, "none/#": nil, "a/c": nil,
	} {
		for _, qos := range []byte{0, 1, 2} {
			var mu sync.Mutex
			var got []string
			subscriber := connect(t, b, fmt.Sprint("subscriber", qos))
			wait(t, subscriber.Subscribe(filter, qos, func(_ paho.Client, m paho.Message) {
				mu.Lock()
				defer mu.Unlock()
				if m.Retained() {
					assert.LessOrEqual(t, m.Qos(), qos)
					got = append(got, m.Topic())
				}
			}))
			require.Eventually(t, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(got) >= len(want)
			}, mqtttest.Patience, time.Millisecond, filter)
			mu.Lock()
			assert.ElementsMatch(t, want, got, filter)
			mu.Unlock()
			subscriber.Disconnect(0)
		}
	}
	messages, _, _ := b.retained.stats()
	assert.Equal(t, 3, messages)
}

// A retained will is kept when its client is lost.
func TestRetainedWill(t *testing.T) {
	b := open(t, &Broker{})
	options := paho.NewClientOptions().AddBroker(b.URL()).SetClientID("device").SetAutoReconnect(false).SetWill("device/available", "offline", 1, true)
	client := paho.NewClient(options)
	wait(t, client.Connect())
	for _, c := range b.server.Clients.GetAll() {
		if c.ID == "device" {
			_ = c.Net.Conn.Close()
		}
	}
	require.Eventually(t, func() bool { return len(b.retained.matching("device/+")) == 1 }, mqtttest.Patience, time.Millisecond)
	message := b.retained.matching("device/available")[0]
	assert.Equal(t, "offline", string(message.Payload))
	assert.Empty(t, message.Properties.User, "the mark of the will is removed")
}

// A message with an expiry interval is not delivered after it.
func TestRetainedMessagesExpire(t *testing.T) {
	limits := Limits{}
	limits.setDefaults()
	r := &retained{limits: &limits, messages: map[string]packets.Packet{}}
	message := packets.Packet{TopicName: "a", Payload: []byte("x"), Created: time.Now().Unix() - 10}
	message.Properties.MessageExpiryInterval = 5
	r.put(message)
	assert.Empty(t, r.matching("a"))
	assert.Empty(t, r.matching("#"))
	_, bytes, _ := r.stats()
	assert.Zero(t, bytes)
}

// TestSubscribeAgainstRetain subscribes with wildcards while others retain and remove messages: the race detector watches, and every
// subscriber gets what stays.
func TestSubscribeAgainstRetain(t *testing.T) {
	b := open(t, &Broker{})
	first := connect(t, b, "first")
	wait(t, first.Publish("race/stays", 1, true, "x"))
	stop := make(chan struct{})
	var publishers sync.WaitGroup
	for p := range 3 {
		client := connect(t, b, fmt.Sprint("publisher", p))
		publishers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				payload := "value"
				if i%2 == 1 {
					payload = ""
				}
				client.Publish(fmt.Sprintf("race/%d/%d", p, i/2%20), 1, true, payload).WaitTimeout(mqtttest.Patience)
			}
		})
	}
	for i := range 60 {
		got := make(chan struct{}, 1)
		client := connect(t, b, fmt.Sprint("subscriber", i))
		wait(t, client.Subscribe([]string{"race/#", "race/+", "#", "+/stays"}[i%4], byte(i%3), func(_ paho.Client, m paho.Message) {
			if m.Topic() == "race/stays" && m.Retained() {
				got <- struct{}{}
			}
		}))
		select {
		case <-got:
		case <-time.After(mqtttest.Patience):
			t.Fatal("the retained message did not arrive")
		}
		client.Disconnect(0)
	}
	close(stop)
	publishers.Wait()
}

// connect connects a client that ends with the test.
func connect(t *testing.T, b *Broker, id string) paho.Client {
	t.Helper()
	client := paho.NewClient(paho.NewClientOptions().AddBroker(b.URL()).SetClientID(id).SetOrderMatters(false))
	wait(t, client.Connect())
	t.Cleanup(func() { client.Disconnect(0) })
	return client
}

func wait(t *testing.T, token paho.Token) {
	t.Helper()
	require.True(t, token.WaitTimeout(mqtttest.Patience))
	require.NoError(t, token.Error())
}
