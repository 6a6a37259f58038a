package sink

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// frames is a sink that calls itself.
type frames func(*pipeline.Result)

func (f frames) Frame(in *pipeline.Result) { f(in) }

// event is an output that calls itself.
type event func(*Event)

func (f event) Event(e *Event) { f(e) }

// TestEventsAreStoredBeforeTheyArePublished: the client has none of an event when the store gets it, and all of a frame's events when the
// sinks behind get the frame.
func TestEventsAreStoredBeforeTheyArePublished(t *testing.T) {
	access := mqtt.Access{Brokers: []string{"mqtt://127.0.0.1:1"}}
	client := &mqtt.Client{Device: "house", Link: mqtt.Link{Access: access, Logger: slog.New(slog.DiscardHandler)}}
	require.NoError(t, client.Open())
	stored := 0
	store := event(func(e *Event) {
		require.EqualValues(t, stored, client.Accounting().Events.Offered)
		require.NotNil(t, e.Stored)
		stored++
	})
	s := Ordered{&Events{To: []Output{store, &Publisher{Client: client}}}, frames(func(*pipeline.Result) {
		require.EqualValues(t, stored, client.Accounting().Events.Offered)
	})}
	for track := range uint64(5) {
		o := &zone.Object{Track: track, Start: time.Unix(2e9, 0)}
		s.Frame(&pipeline.Result{
			Camera: "gate", Labels: []string{"person"}, Tracker: new(pipeline.Tracker),
			Events: &zone.Result{Events: []zone.Event{
				{Kind: zone.New, Object: o, Zone: -1, Line: -1},
				{Kind: zone.End, Object: o, Zone: -1, Line: -1},
			}},
		})
	}
	require.Equal(t, 10, stored)
}
