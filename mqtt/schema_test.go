package mqtt

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// schemas compiles every schema of the repository, by name.
func schemas(t testing.TB) map[string]*jsonschema.Schema {
	t.Helper()
	files, err := filepath.Glob("schema/*.schema.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	compiled := map[string]*jsonschema.Schema{}
	for _, file := range files {
		schema, err := jsonschema.NewCompiler().Compile(file)
		require.NoError(t, err, file)
		compiled[strings.TrimSuffix(filepath.Base(file), ".schema.json")] = schema
	}
	return compiled
}

func validate(t testing.TB, schema *jsonschema.Schema, payload string) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(payload))
	require.NoError(t, err, payload)
	return schema.Validate(value)
}

// schemaOf names the schema of a topic below the base; empty for payloads that are no JSON.
func schemaOf(topic string) string {
	levels := strings.Split(topic, "/")
	last := levels[len(levels)-1]
	switch {
	case topic == "status", topic == "stats", topic == "error":
		return topic
	case len(levels) == 2 && last == "detections":
		return "detections"
	case len(levels) == 2 && last == "events":
		return "event"
	case len(levels) >= 3 && (levels[1] == "count" || levels[1] == "zone"):
		return "count"
	case len(levels) == 3 && levels[1] == "line":
		return "line"
	case len(levels) == 3 && (levels[1] == "threshold" || levels[1] == "interval"):
		return levels[1]
	}
	return ""
}

func TestEveryMessageFitsItsSchema(t *testing.T) {
	compiled := schemas(t)
	broker := startBroker(t, "")
	sub := subscribe(t, broker.URL(), "edge-infer/#", "homeassistant/#")
	c := testClient(broker.URL())
	c.DiscoveryPrefix = "homeassistant"
	c.Controller = &recorder{}
	start(t, c)
	waitConnected(t, c)
	now := time.Now()
	random := rand.New(rand.NewPCG(7, 8))
	events := []Event{
		{Type: "new", Label: "person", Score: 0.5, Box: [4]float64{1, 2, 3, 4}, Track: 3, Start: now, Zones: []string{"yard", "b"}},
		{Type: "update", Label: "person", TopScore: 0.9, Track: 3},
		{
			Type: "end", Label: "person", Track: 3, Start: now.Add(-time.Second), End: now, Median: 0.8, Object: "1795229709.517529-3",
			Entered: []string{"yard"}, Path: [][2]float64{{1, 2}, {3.5, 4}},
		},
		{Type: "enter", Label: "car", Zone: "yard"},
		{Type: "leave", Label: "car", Zone: "yard", Dwell: 1500 * time.Millisecond},
		{Type: "loiter", Label: "car", Zone: "yard", Dwell: time.Minute},
		{Type: "cross", Label: "car", Line: "door", Direction: "in"},
		{Type: "appear", Label: "car", Count: 2},
		{Type: "disappear", Label: "car"},
	}
	for i := range events {
		events[i].Camera, events[i].Time = "cam \"1\"/#+", now
		c.Event(&events[i])
	}
	c.Detections(randomFrame(random, 0))
	c.Detections(randomFrame(random, 20))
	c.Status(&Status{Accuracy: &Accuracy{Precision: "fp16", Passed: true, MatchRate: 1, Time: now}})
	c.Status(&Status{Version: "1", Started: now.Add(-time.Hour), Accuracy: &Accuracy{
		Precision: "fp16", Passed: true, MatchRate: 0.99871, Boxes: 6955, Flipped: 3, Pictures: 1000, Time: now, Labelled: true, MAP50: 0.96, MAP: 0.87, ReferenceMAP50: 1,
		Refused: []RefusedPrecision{{Precision: "int8", Reasons: []string{"match rate \"0.9\"", "mAP"}}},
	}, Cameras: []CameraStatus{{Name: "a", State: "running"}, {Name: "b", State: "failed", Error: "no \"such\" file"}}})
	c.Stats(&Stats{
		Started: now.Add(-time.Hour), Engine: time.Millisecond, Temperatures: []Reading{{"tj", 51.25}, {"gpu", -3}}, Power: []Reading{{"VDD_IN", 7.5}},
		Loads: []Reading{{"cpu", 12.5}}, PowerMode: "MAXN", Throttled: []string{"VDD_IN: over-current", "cpu: heat"},
		Cameras: []CameraStats{{Name: "a", Captured: 30, Inferred: 29.97, LatencyP50: time.Millisecond, LatencyP99: time.Second, Queue: 1}, {Name: "b"}},
	})
	c.Count("cam0", "person", 0)
	c.Zone("cam0", "yard", "all", 12)
	c.Line("cam0", "door", 4, 2)
	c.LineLabel("cam0", "door", "person", 3, 0)
	c.Settings("cam0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	require.NoError(t, c.Announce(announcement()))
	c.refuse("edge-infer/gate/cam0/detect/set", assert.AnError)
	require.Eventually(t, func() bool {
		a := c.Accounting()
		return a.Detections.Queued+a.State.Queued+a.Events.Queued == 0
	}, patience, time.Millisecond)
	seen := map[string]int{}
	require.Eventually(t, func() bool {
		return sub.last("edge-infer/gate/error") != "" && len(sub.messages("edge-infer/gate/cam \"1\"___/events")) == len(events)
	},
		patience, time.Millisecond)
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, m := range sub.got {
		name := "discovery"
		if !strings.HasPrefix(m.topic, "homeassistant/") {
			name = schemaOf(strings.TrimPrefix(m.topic, "edge-infer/gate/"))
		}
		if name == "" {
			continue
		}
		assert.NoError(t, validate(t, compiled[name], m.payload), "%s %s", m.topic, m.payload)
		seen[name]++
	}
	for name := range compiled {
		assert.NotZero(t, seen[name], "no message for schema %s", name)
	}
}

func TestSchemasRefuseWhatIsWrong(t *testing.T) {
	compiled := schemas(t)
	for name, payloads := range map[string][]string{
		"detections": {
			`{}`, `{"v":1}`, `{"v":2,"device":"gate","camera":"c","seq":1,"time":"2026-11-20T10:11:12.345678Z","width":1,"height":1,"latency_ms":1,"detections":[]}`,
			`{"v":1,"device":"gate","camera":"c","seq":1,"time":"2026-11-20","width":1,"height":1,"latency_ms":1,"detections":[]}`,
			`{"v":1,"device":"gate","camera":"c","seq":1,"time":"2026-11-20T10:11:12.345678Z","width":1,"height":1,"latency_ms":1,"detections":[{"label":"a","class":0,"score":2,"box":[1,2,3,4]}]}`,
		},
		"count":     {`-1`, `1.5`, `"1"`},
		"threshold": {`1.01`, `-0.1`},
		"interval":  {`0`, `1001`},
		"line":      {`{"in":1}`, `{"in":1,"out":-1}`},
		"event":     {`{"v":1,"id":"x","type":"new","device":"d","camera":"c","seq":1,"time":"2026-11-20T10:11:12.345678Z","label":"l","class":0}`},
		"discovery": {
			`{"device":{"identifiers":["x"],"name":"n"},"origin":{"name":"o"},"availability":[],"qos":1,"components":{"a":{"platform":"sensor","name":"n","unique_id":"u"}}}`,
			`{"device":{"identifiers":["x"],"name":"n"},"origin":{"name":"o"},"availability":[],"qos":1,"components":{"a":{"platform":"sensor","name":"n","unique_id":"u","state_topic":"t","colour":"red"}}}`,
		},
	} {
		for _, payload := range payloads {
			assert.Error(t, validate(t, compiled[name], payload), "%s %s", name, payload)
		}
	}
	_, err := os.Stat("schema/README.md")
	assert.NoError(t, err)
}
