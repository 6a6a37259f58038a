package mqtt

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
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
