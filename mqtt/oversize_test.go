package mqtt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// TestAMessageThatIsTooLargeHoldsNothingUp publishes a message of each kind that is larger than mosquitto takes, among others.
func TestAMessageThatIsTooLargeHoldsNothingUp(t *testing.T) {
	for _, configured := range []int{0, 131072} {
		t.Run(fmt.Sprintf("limit %d configured", configured), func(t *testing.T) {
			m := mqtttest.StartMosquitto(t, "allow_anonymous true", "max_packet_size 131072")
			sub := m.Listen("edge-infer/#")
			log := &mqtttest.Journal{}
			c := testClient("tcp://" + m.Address)
			c.Logger, c.MaxPacket = log.Logger(), configured
			require.NoError(t, c.Open())
			c.Status(&payload.Status{Model: strings.Repeat("m", 150_000)})
			for i := range 28 {
				e := &payload.Event{Type: "update", Camera: "cam0", Sequence: uint64(i), Time: time.Now()}
				if i == 14 {
					e.Path = make([][2]float64, 40_000)
				}
				c.Event(e)
			}
			started := time.Now()
			begin(t, c)
			c.Count("cam0", "person", 3)
			c.Snapshot("cam0", "person", make([]byte, 200_000))
			c.Image("cam0", make([]byte, 200_000))
			sub.WaitLast(t, "edge-infer/gate/cam0/count/person", "3")
			require.Eventually(t, func() bool { a := c.Accounting(); return a.Events.Queued+a.State.Queued == 0 }, mqtttest.Patience,
				time.Millisecond,
				"%+v %s", c.Accounting(), log)
			t.Logf("all through after %v", time.Since(started))
			waitConnected(t, c)
			assert.Equal(t, ledger.Account{Offered: 28, Delivered: 27, Dropped: 1}, balanced(t, c).Events)
			state := balanced(t, c).State
			assert.Equal(t, uint64(4), state.Delivered+state.Dropped)
			// Else the snapshot, of QoS 0, may have gone out before the broker closed the connection on it.
			if configured > 0 {
				assert.Equal(t, ledger.Account{Offered: 4, Delivered: 1, Dropped: 3}, state)
			}
			require.Eventually(t, func() bool { return c.Health().Oversize.Messages == 4 }, mqtttest.Patience, time.Millisecond)
			h := c.Health()
			assert.Equal(t, uint64(4), h.Oversize.Messages)
			assert.GreaterOrEqual(t, h.Oversize.Bytes, 150_000)
			assert.Greater(t, h.Largest, 100)
			assert.LessOrEqual(t, h.Connects, uint64(20), "two or so for each message")
			if configured > 0 {
				assert.Equal(t, uint64(1), h.Connects, "what is known beforehand costs no connection")
				assert.Equal(t, 131073, h.Oversize.Limit)
			} else {
				assert.Contains(t, log.String(), "mqtt broker rejects packets of this size; larger messages are dropped from now on")
				assert.Contains(t, log.String(), "broker closed the connection with a packet of ")
				assert.Contains(t, log.String(), "raise the broker's limit (mosquitto: max_packet_size), or set mqtt.max_packet")
			}
			assert.NotContains(t, log.String(), "TLS")
			for _, topic := range []string{"status", "cam0/events", "cam0/snapshot/person"} {
				assert.Contains(t, log.String(), "mqtt message is larger than the broker takes, it is set aside\" topic=edge-infer/gate/"+topic)
			}
			require.Eventually(t, func() bool { return len(sub.Payloads("edge-infer/gate/cam0/events")) >= 27 }, mqtttest.Patience, time.Millisecond)

			// A smaller value of the same topic goes through, and says what was set aside.
			c.Status(&payload.Status{Model: "m"})
			require.Eventually(t, func() bool { return len(sub.Payloads("edge-infer/gate/status")) == 1 }, mqtttest.Patience, time.Millisecond)
			payload := sub.Payloads("edge-infer/gate/status")[0]
			assert.NoError(t, validate(t, schemas(t)["status"], payload))
			var status struct {
				Large Oversize `json:"too_large"`
			}
			require.NoError(t, json.Unmarshal([]byte(payload), &status))
			assert.Equal(t, uint64(4), status.Large.Messages)
			assert.NotEmpty(t, status.Large.Topic)

			// After a restart of the broker what is retained is repeated, and what was set aside is not counted again.
			m.Kill()
			require.Eventually(t, func() bool { return !c.Connection().Connected }, mqtttest.Patience, time.Millisecond)
			m.Start()
			waitConnected(t, c)
			again := m.Listen("edge-infer/#")
			again.WaitLast(t, "edge-infer/gate/cam0/count/person", "3")
			assert.Equal(t, uint64(4), c.Health().Oversize.Messages)
			balanced(t, c)
		})
	}
}

// TestEventsGoBeforeState has both wait for the connection.
func TestEventsGoBeforeState(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	sub := m.Listen("edge-infer/#")
	c := testClient("tcp://" + m.Address)
	require.NoError(t, c.Open())
	for i := range 40 {
		c.Count("cam0", fmt.Sprint(i), i)
		c.Event(&payload.Event{Type: "update", Camera: "cam0"})
	}
	begin(t, c)
	require.Eventually(t, func() bool { a := c.Accounting(); return a.Events.Queued+a.State.Queued == 0 }, mqtttest.Patience, time.Millisecond)
	require.Eventually(t, func() bool { return strings.Count(sub.Output(), "edge-infer/gate/cam0/") >= 80 }, mqtttest.Patience,
		time.Millisecond)
	var order []string
	for line := range strings.Lines(sub.Output()) {
		if rest, ok := strings.CutPrefix(line, "edge-infer/gate/cam0/"); ok {
			order = append(order, rest[:5])
		}
	}
	assert.Equal(t, "event", order[0])
	assert.Contains(t, order[:8], "count", "state has its turns")
}

func TestPacketsHaveTheSizeThatIsSaid(t *testing.T) {
	for _, payload := range []int{0, 1, 120, 121, 122, 123, 124, 16_000, 16_373, 16_380, 200_000, 2_097_143, 2_097_150} {
		m := &mailbox{Topic: "abc", Queue: newMailboxQueue(), Ledger: &ledger.Ledger{}}
		m.PutBytes(make([]byte, payload))
		m.Queue.Take(time.Now())
		assert.Equal(t, len(m.AppendPacket(nil)), packetSize("abc", payload, 0), "%d", payload)
		assert.Contains(t, []int{2, 3}, packetSize("abc", payload, 1)-packetSize("abc", payload, 0))
	}
}
