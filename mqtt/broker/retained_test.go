package broker

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

func TestFilterMatchesTopic(t *testing.T) {
	for _, c := range []struct {
		filter, topic string
		want          bool
	}{
		{"a/b", "a/b", true},
		{"a/b", "a/c", false},
		{"a/b", "a", false},
		{"a", "a/b", false},
		{"#", "a/b", true},
		{"#", "/", true},
		{"a/#", "a", true},
		{"a/#", "a/b/c", true},
		{"a/#", "ab", false},
		{"a/+", "a", false},
		{"a/+", "a/", true},
		{"a/+", "a/b", true},
		{"a/+", "a/b/c", false},
		{"+/b", "/b", true},
		{"+/+", "/b", true},
		{"+", "/b", false},
		{"a/+/c", "a/b/c", true},
		{"a/+/c", "a/b/d", false},
		{"+/b/#", "a/b", true},
		{"#", "$SYS/broker/version", false},
		{"+/broker/#", "$SYS/broker/version", false},
		{"$SYS/#", "$SYS/broker/version", true},
		{"$SYS/broker/+", "$SYS/broker/version", true},
	} {
		assert.Equal(t, c.want, matches(c.filter, c.topic), "%s %s", c.filter, c.topic)
	}
}

// receive reads n bytes as hexadecimal digits.
func receive(t testing.TB, conn net.Conn, n int) string {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(mqtttest.Patience)))
	data := make([]byte, n)
	_, err := io.ReadFull(conn, data)
	require.NoError(t, err)
	return hex.EncodeToString(data)
}

// TestRetainedMessagesFollowTheSubscription exchanges packets of MQTT 5: SUBSCRIBE, and what the broker answers before the PINGRESP.
func TestRetainedMessagesFollowTheSubscription(t *testing.T) {
	const pong = "d000"
	b := open(t, &Broker{})
	publisher := mqtttest.Subscribe(t, b.URL(), "unrelated")
	publish := func(topic, payload string) {
		require.True(t, publisher.Client.Publish(topic, 1, true, payload).WaitTimeout(mqtttest.Patience))
	}
	publish("r/a", "1")
	publish("r/a", "2")
	publish("r/b", "3")
	publish("r", "4")
	publish("r/gone", "5")
	publish("r/gone", "")
	for _, c := range []struct{ name, packets, want string }{
		{"no match", "8207 0001 00 000178 01", "9004 0001 00 01"},
		{"one topic, QoS 0", "8209 0001 00 0003722f61 00", "9004 0001 00 00  3107 0003722f61 00 32"},
		{"one topic, QoS 1", "8209 0001 00 0003722f61 01", "9004 0001 00 01  3309 0003722f61 0001 00 32"},
		{
			"wildcard with the parent level", "8209 0001 00 0003722f23 00",
			"9004 0001 00 00  3105 000172 00 34  3107 0003722f61 00 32  3107 0003722f62 00 33",
		},
		{"one level", "8209 0001 00 0003722f2b 00", "9004 0001 00 00  3107 0003722f61 00 32  3107 0003722f62 00 33"},
		{"subscription identifier", "820b 0001 020b07 0003722f61 00", "9004 0001 00 00  3109 0003722f61 020b07 32"},
		{"retain handling 2", "8209 0001 00 0003722f61 20", "9004 0001 00 00"},
		{
			"retain handling 1, then again", "8209 0001 00 0003722f61 10 8209 0002 00 0003722f61 10",
			"9004 0001 00 00  3107 0003722f61 00 32  9004 0002 00 00",
		},
		{
			"retain handling 0 twice", "8209 0001 00 0003722f61 00 8209 0002 00 0003722f61 00",
			"9004 0001 00 00  3107 0003722f61 00 32  9004 0002 00 00  3107 0003722f61 00 32",
		},
		{"shared", "8212 0001 00 000c 2473686172652f672f722f61 00", "9004 0001 00 00"},
		{"deleted", "820c 0001 00 0006722f676f6e65 00", "9004 0001 00 00"},
		{"an invalid filter beside a valid one", "820f 0001 00 0003722361 00 0003722f61 00", "9005 0001 00 8f00  3107 0003722f61 00 32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dial(t, b, login(5, "subscriber"))
			connack := receive(t, conn, 2)
			length, err := strconv.ParseInt(connack[2:], 16, 16)
			require.NoError(t, err)
			receive(t, conn, int(length))
			_, err = conn.Write(append(bytesOf(t, c.packets), 0xc0, 0))
			require.NoError(t, err)
			want := hex.EncodeToString(bytesOf(t, c.want+pong))
			assert.Equal(t, want, receive(t, conn, len(want)/2))
			conn.Close()
			require.Eventually(t, func() bool { return b.Stats().Connections == 1 }, mqtttest.Patience, time.Millisecond)
		})
	}
}

// TestRetainAsPublished: a live message keeps its retain flag only for a subscription of MQTT 5 that wants it.
func TestRetainAsPublished(t *testing.T) {
	for _, c := range []struct {
		option byte
		want   string
	}{
		{0x00, "3007 0003722f61 00 31"},
		{0x08, "3107 0003722f61 00 31"},
	} {
		b := open(t, &Broker{})
		conn := dial(t, b, login(5, "subscriber"))
		length, err := strconv.ParseInt(receive(t, conn, 2)[2:], 16, 16)
		require.NoError(t, err)
		receive(t, conn, int(length))
		_, err = conn.Write(append(bytesOf(t, "8209 0001 00 0003722f61"), c.option, 0xc0, 0))
		require.NoError(t, err)
		receive(t, conn, 6+2) // SUBACK, and PINGRESP: retained messages have been looked up
		publisher := mqtttest.Subscribe(t, b.URL(), "unrelated")
		require.True(t, publisher.Client.Publish("r/a", 1, true, "1").WaitTimeout(mqtttest.Patience))
		want := hex.EncodeToString(bytesOf(t, c.want))
		assert.Equal(t, want, receive(t, conn, len(want)/2))
	}
}

// TestMoreRetainedMessagesThanUnacknowledgedOnes delivers all of them to a client that acknowledges only at the end.
func TestMoreRetainedMessagesThanUnacknowledgedOnes(t *testing.T) {
	const topics = 9000 // MaximumInflight is 8192
	b := open(t, &Broker{})
	publisher := mqtttest.Subscribe(t, b.URL(), "unrelated")
	for i := range topics {
		publisher.Client.Publish(fmt.Sprint("many/", i), 1, true, "x")
	}
	require.Eventually(t, func() bool { return b.Stats().RetainedMessages == topics }, mqtttest.Patience, time.Millisecond)
	sub := mqtttest.Subscribe(t, b.URL(), "many/#")
	require.Eventually(t, func() bool { return len(sub.All()) == topics }, mqtttest.Patience, time.Millisecond)
	for _, m := range sub.All() {
		require.True(t, m.Retained)
	}
	publisher.Client.Publish("many/0", 1, true, "live")
	sub.WaitLast(t, "many/0", "live")
}

// TestSubscribeWhileRetaining changes and deletes retained messages while clients subscribe with wildcards. The race detector finds
// unsynchronised access; without it, each subscriber must end with the last value of every topic.
func TestSubscribeWhileRetaining(t *testing.T) {
	const topics, rounds, subscribers = 8, 60, 12
	b := open(t, &Broker{})
	publisher := mqtttest.Subscribe(t, b.URL(), "unrelated")
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for round := range rounds {
			for i := range topics {
				topic := fmt.Sprintf("race/%d/state", i)
				publisher.Client.Publish(topic, 1, true, "")
				publisher.Client.Publish(topic, 1, true, fmt.Sprint(round)).WaitTimeout(mqtttest.Patience)
			}
		}
	})
	var subs []*mqtttest.Subscriber
	for i := range subscribers {
		filter := []string{"race/+/state", "race/#", "#", "+/+/state"}[i%4]
		subs = append(subs, mqtttest.Subscribe(t, b.URL(), filter))
	}
	publishing.Wait()
	late := mqtttest.Subscribe(t, b.URL(), "race/#")
	for i := range topics {
		for _, sub := range append(subs, late) {
			sub.WaitLast(t, fmt.Sprintf("race/%d/state", i), fmt.Sprint(rounds-1))
		}
	}
	retained := 0
	for _, m := range late.All() { // the last message may come as a new one too: it is acknowledged before it is delivered
		if m.Retained {
			retained++
		}
	}
	assert.Equal(t, topics, retained)
}
