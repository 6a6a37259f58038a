package sink

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// hooks is a sink with one webhook whose receiver is away, and its sender.
func hooks(t testing.TB) (*Events, *webhook.Sender) {
	s := &webhook.Sender{Name: "away", URL: "http://127.0.0.1:1", Logger: mqtttest.Discard()}
	require.NoError(t, s.Open())
	t.Cleanup(func() { _ = s.Close() })
	w := &Webhooks{}
	w.Set([]*webhook.Sender{s})
	return &Events{To: []Output{w}}, s
}

func withEvent(kind zone.Kind) *pipeline.Result {
	object := &zone.Object{Detection: postprocess.Detection{Class: 0}, Start: time.Now(), Zones: []int{0}, Entered: []int{0}}
	return &pipeline.Result{
		Camera: "yard", Labels: []string{"person"}, Tracker: &pipeline.Tracker{Config: zone.Config{Zones: []zone.Zone{{Name: "door"}}}},
		Events: &zone.Result{Events: []zone.Event{{Kind: kind, Object: object, Zone: -1, Line: -1, Time: time.Now()}}},
	}
}

func TestEventsReachWebhooks(t *testing.T) {
	w, sender := hooks(t)
	w.Frame(withEvent(zone.New))
	w.Frame(withEvent(zone.Update))
	w.Frame(&pipeline.Result{Camera: "untracked"})
	assert.EqualValues(t, 1, sender.Status().Queued, "updates are left out")
}

func TestWebhooksWithoutEventsNoAllocations(t *testing.T) {
	w, _ := hooks(t)
	quiet := withEvent(zone.New)
	quiet.Events.Events = nil
	assert.Zero(t, testing.AllocsPerRun(100, func() { w.Frame(quiet) }))
}

func BenchmarkWebhooks(b *testing.B) {
	w, _ := hooks(b)
	in := withEvent(zone.New)
	for b.Loop() {
		w.Frame(in)
	}
}
