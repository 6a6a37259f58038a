package mqtt

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func frame(camera string, sequence uint64) *Detections {
	return &Detections{
		Camera: camera, Sequence: sequence, Time: time.Date(2026, 11, 20, 10, 11, 12, 345678901, time.UTC), Width: 1920, Height: 1080,
		Latency: 9400 * time.Microsecond,
		Objects: []Detection{{Label: "person", Score: 0.914, Box: [4]float64{412, 88.5, 655.2, 690.1}, Track: 17}},
	}
}

func TestEveryFrameArrives(t *testing.T) {
	noLeaks(t)
	broker := startBroker(t, "")
	sub := subscribe(t, broker.URL(), "edge-infer/#")
	c := testClient(broker.URL())
	stop := start(t, c)
	sub.waitLast(t, "edge-infer/gate/available", "online")
	for i := range 100 {
		c.Detections(frame("cam0", uint64(i)))
		require.Eventually(t, func() bool { return c.Accounting().Detections.Queued == 0 }, patience, 50*time.Microsecond)
	}
	c.Status(&Status{Version: "1.0", Cameras: []CameraStatus{{Name: "cam0", State: "running"}}})
	c.Count("cam0", "person", 3)
	c.Line("cam0", "door", 4, 2)
	id := c.Event(&Event{Type: "new", Camera: "cam0", Label: "person", Time: time.Now()})
	topic := "edge-infer/gate/cam0/detections"
	require.Eventually(t, func() bool { return len(sub.messages(topic)) == 100 }, patience, time.Millisecond)
	for i, payload := range sub.messages(topic) {
		assert.Contains(t, payload, fmt.Sprintf(`"seq":%d,"time":"2026-11-20T10:11:12.345678Z"`, i))
	}
	assert.Equal(t, `{"v":1,"device":"gate","camera":"cam0","seq":99,"time":"2026-11-20T10:11:12.345678Z","width":1920,"height":1080,"latency_ms":9.4,`+
		`"detections":[{"label":"person","class":0,"score":0.914,"box":[412,88.5,655.2,690.1],"track":17}]}`, sub.last(topic))
	sub.waitLast(t, "edge-infer/gate/cam0/count/person", "3")
	sub.waitLast(t, "edge-infer/gate/cam0/line/door", `{"in":4,"out":2}`)
	require.Eventually(t, func() bool { return len(sub.messages("edge-infer/gate/cam0/events")) == 1 }, patience, time.Millisecond)
	assert.Contains(t, sub.last("edge-infer/gate/cam0/events"), `"id":"`+id+`"`)
	require.Eventually(t, func() bool { a := c.Accounting(); return a.State.Queued+a.Events.Queued == 0 }, patience, time.Millisecond)
	a := balanced(t, c)
	assert.Equal(t, Account{Offered: 100, Delivered: 100}, a.Detections)
	assert.Equal(t, Account{Offered: 3, Delivered: 3}, a.State)
	assert.Equal(t, Account{Offered: 1, Delivered: 1}, a.Events)
	assert.Less(t, stop(), 2*time.Second)
	sub.waitLast(t, "edge-infer/gate/available", "stopped")
	sub.client.Disconnect(10)
	broker.Close()
}
