package mqtt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// TestTwoMachinesOfOneName: each of two machines with the same device name reports the other, and nothing is reported of a machine that was
// replaced.
func TestTwoMachinesOfOneName(t *testing.T) {
	m := mqtttest.StartMosquitto(t, "allow_anonymous true")
	client := func() *Client {
		c := testClient("tcp://" + m.Address)
		c.Controller = &recorder{}
		return c
	}
	first, second, third := client(), client(), client()
	stop := start(t, first)
	waitConnected(t, first)
	waitDelivered(t, first)
	sub := m.Listen("edge-infer/gate/machine")
	require.Eventually(t, func() bool { return len(sub.Payloads("edge-infer/gate/machine")) > 0 }, mqtttest.Patience, time.Millisecond)
	require.NoError(t, validate(t, schemas(t)["machine"], sub.Payloads("edge-infer/gate/machine")[0]))
	stop()

	start(t, second)
	waitConnected(t, second)
	waitDelivered(t, second)
	require.Empty(t, second.Connection().Conflict, "the first machine is not there any more")

	start(t, third)
	for _, c := range []*Client{second, third} {
		require.Eventually(t, func() bool { return c.Connection().Conflict != "" }, mqtttest.Patience, time.Millisecond)
		require.Contains(t, c.Connection().Conflict, machineID(""))
	}
	second.outbox.mu.Lock()
	second.conflict.seen = time.Now().Add(-conflictTime)
	second.outbox.mu.Unlock()
	require.Empty(t, second.Connection().Conflict, "nothing was heard of it for long")
}

// TestForeignMachineMessages: anybody can publish on the machine topic.
func TestForeignMachineMessages(t *testing.T) {
	c := testClient("tcp://127.0.0.1:1")
	require.NoError(t, c.Open())
	defer c.Close()
	for _, text := range []string{
		"", "x", "{}", "[]", `{"run":1}`, `{"machine":"a","host":"b","run":""}`, `{"machine":"a","host":"b","run":"` + c.run + `"}`,
	} {
		c.conflict.note([]byte(text))
		assert.Empty(t, c.Connection().Conflict, text)
	}
	c.conflict.note([]byte(`{"machine":"12345678","host":"","run":"abc","later":1}`))
	assert.Equal(t, "without host name (machine 12345678)", c.Connection().Conflict)
}
