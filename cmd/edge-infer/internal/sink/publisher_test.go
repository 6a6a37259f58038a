package sink

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/mqtt"
	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// TestRepeatedEventsAreMarked: who records events needs one of those that a crowd makes again and again.
func TestRepeatedEventsAreMarked(t *testing.T) {
	broker := &embedded.Broker{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, broker.Open())
	t.Cleanup(func() { broker.Close() })
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/house/gate/events")
	access := mqtt.Access{Brokers: []string{broker.URL()}}
	client := &mqtt.Client{Device: "house", Link: mqtt.Link{Access: access, Logger: slog.New(slog.DiscardHandler)}}
	require.NoError(t, client.Open())
	ended := make(chan error, 1)
	go func() { ended <- client.Run(t.Context()) }()
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		require.NoError(t, <-ended)
	})

	p := &Events{To: []Output{&Publisher{Client: client, RepeatInterval: 10 * time.Second}}}
	follower := &pipeline.Tracker{Config: zone.Config{Zones: []zone.Zone{{Name: "yard"}, {Name: "road"}}}}
	begin := time.Unix(2e9, 0)
	events := []struct {
		seconds  float64
		kind     zone.Kind
		class    int
		zone     int
		repeated bool
	}{
		{0, zone.New, 0, -1, false},
		{0, zone.Enter, 0, 0, false},
		{1, zone.New, 0, -1, true},
		{1, zone.New, 1, -1, false},    // another label
		{2, zone.Enter, 0, 1, false},   // another zone
		{3, zone.Update, 0, -1, false}, // updates are frequent anyway
		{3.1, zone.Update, 0, -1, false},
		{9.9, zone.New, 0, -1, true},
		{10, zone.New, 0, -1, false}, // those in between do not prolong it
		{11, zone.New, 0, -1, true},
		{-60, zone.New, 0, -1, false}, // the clock was set
	}
	for _, e := range events {
		at := begin.Add(time.Duration(e.seconds * float64(time.Second)))
		o := &zone.Object{Track: 1, Detection: postprocess.Detection{Class: e.class}, Start: begin}
		p.Frame(&pipeline.Result{
			Camera: "gate", Time: at, Labels: []string{"person", "car"}, Tracker: follower,
			Events: &zone.Result{Events: []zone.Event{{Kind: e.kind, Time: at, Object: o, Zone: e.zone, Line: -1}}},
		})
	}
	const topic = "edge-infer/house/gate/events"
	require.Eventually(t, func() bool { return len(sub.Messages(topic)) == len(events) }, mqtttest.Patience, 10*time.Millisecond)
	for i, text := range sub.Messages(topic) {
		var message struct{ Repeated bool }
		require.NoError(t, json.Unmarshal([]byte(text), &message))
		assert.Equal(t, events[i].repeated, message.Repeated, "%d: %s", i, text)
	}
}

// In Frigate's topics an object counts as active while it moves: in its camera, under its label and all, and in the zones that it is in.
func TestActiveObjectsAreCounted(t *testing.T) {
	broker := &embedded.Broker{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, broker.Open())
	t.Cleanup(func() { broker.Close() })
	sub := mqtttest.Subscribe(t, broker.URL(), "frigate/#")
	client := &mqtt.Client{
		Device: "house", Frigate: "frigate",
		Link: mqtt.Link{Access: mqtt.Access{Brokers: []string{broker.URL()}}, Logger: slog.New(slog.DiscardHandler)},
	}
	require.NoError(t, client.Open())
	ended := make(chan error, 1)
	go func() { ended <- client.Run(t.Context()) }()
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		require.NoError(t, <-ended)
	})

	p := &Events{To: []Output{&Publisher{Client: client}}}
	follower := &pipeline.Tracker{Config: zone.Config{Zones: []zone.Zone{{Name: "yard"}, {Name: "road"}}}}
	start := time.Unix(2e9, 0)
	happen := func(kind zone.Kind, track uint64, class int, stationary bool, zones ...int) {
		o := &zone.Object{Track: track, Detection: postprocess.Detection{Class: class}, Start: start, Stationary: stationary, Zones: zones}
		p.Frame(&pipeline.Result{
			Camera: "gate", Time: start, Labels: []string{"person", "car"}, Tracker: follower,
			Events: &zone.Result{Events: []zone.Event{{Kind: kind, Time: start, Object: o, Zone: -1, Line: -1}}},
		})
	}
	expect := func(counts map[string]string) {
		t.Helper()
		for place, want := range counts {
			sub.WaitLast(t, "frigate/"+place+"/active", want)
		}
	}
	happen(zone.New, 1, 0, false)
	happen(zone.New, 2, 0, false)
	happen(zone.New, 3, 1, false, 0)
	expect(map[string]string{"gate/person": "2", "gate/car": "1", "gate/all": "3", "yard/car": "1", "yard/all": "1"})
	happen(zone.Enter, 1, 0, false, 0)
	happen(zone.Update, 3, 1, true, 0)
	expect(map[string]string{"gate/car": "0", "gate/all": "2", "yard/person": "1", "yard/car": "0", "yard/all": "1"})
	happen(zone.Leave, 1, 0, false)
	happen(zone.End, 2, 0, false)
	expect(map[string]string{"gate/person": "1", "gate/all": "1", "yard/person": "0", "yard/all": "0"})
	for _, m := range sub.All() {
		require.NotContains(t, m.Topic, "frigate/road/")
	}
}

// A label called all is counted beside the total, and labels that differ in what a topic must not contain have topics of their own.
func TestLabelsHaveTopicsOfTheirOwn(t *testing.T) {
	broker := &embedded.Broker{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, broker.Open())
	t.Cleanup(func() { broker.Close() })
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/house/gate/#", "frigate/#")
	client := &mqtt.Client{
		Device: "house", Frigate: "frigate",
		Link: mqtt.Link{Access: mqtt.Access{Brokers: []string{broker.URL()}}, Logger: slog.New(slog.DiscardHandler)},
	}
	require.NoError(t, client.Open())
	ended := make(chan error, 1)
	go func() { ended <- client.Run(t.Context()) }()
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		require.NoError(t, <-ended)
	})
	publisher, start := &Publisher{Client: client}, time.Unix(2e9, 0)
	p := Ordered{&Events{To: []Output{publisher}}, publisher}
	var changes []zone.Change
	var events []zone.Event
	for class := range 4 {
		changes = append(changes, zone.Change{Counter: zone.Present, Class: class, Value: class + 1})
		object := &zone.Object{Track: uint64(class + 1), Detection: postprocess.Detection{Class: class}, Start: start}
		events = append(events, zone.Event{Kind: zone.New, Time: start, Object: object, Zone: -1, Line: -1})
	}
	p.Frame(&pipeline.Result{
		Camera: "gate", Time: start, Labels: []string{"all", "a/b", "a_b", "_all"}, Tracker: &pipeline.Tracker{},
		Events: &zone.Result{Events: events, Changes: changes},
	})
	for label, want := range map[string]string{"_all": "1", "a%2Fb": "2", "a_b": "3", "__all": "4", "all": "0"} {
		sub.WaitLast(t, "edge-infer/house/gate/count/"+label, want)
	}
	for label, want := range map[string]string{"_all": "1", "a%2Fb": "1", "a_b": "1", "__all": "1", "all": "4"} {
		sub.WaitLast(t, "frigate/gate/"+label+"/active", want)
	}
}
