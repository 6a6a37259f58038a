package mqtt

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/topic"
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
	case topic == "status", topic == "stats", topic == "error", topic == "machine":
		return topic
	case len(levels) == 2 && last == "detections":
		return "detections"
	case len(levels) == 2 && last == "events":
		return "event"
	case len(levels) >= 3 && (levels[1] == "count" || levels[1] == "zone"):
		return "count"
	case len(levels) == 3 && levels[1] == "line":
		return "line"
	case len(levels) == 3 && levels[0] == "jobs":
		return "job"
	case len(levels) == 3 && (levels[1] == "threshold" || levels[1] == "interval"):
		return levels[1]
	}
	return ""
}

// TestEveryMessageFitsItsSchema is as long as its list of messages.
func TestEveryMessageFitsItsSchema(t *testing.T) {
	compiled := schemas(t)
	broker := startBroker(t, "")
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/#", "homeassistant/#")
	c := testClient(broker.URL())
	c.DiscoveryPrefix = "homeassistant"
	c.Controller = &recorder{}
	start(t, c)
	waitConnected(t, c)
	now := time.Now()
	events := []payload.Event{
		{Type: "new", Label: "person", Score: 0.5, Box: [4]float64{1, 2, 3, 4}, Track: 3, Start: now, Zones: []string{"yard", "b"}},
		{
			Type: "update", Label: "person", TopScore: 0.9, Track: 3,
			Attributes: []payload.Attribute{{Name: "helmet", Value: "no \"one\"", Score: 0.75}},
		},
		{
			Type: "end", Label: "person", Track: 3, Start: now.Add(-time.Second), End: now, Median: 0.8, Object: "1795229709.517529-3",
			Embedding: []byte("ADgAuA=="), Entered: []string{"yard"}, Path: [][2]float64{{1, 2}, {3.5, 4}},
		},
		{Type: "enter", Label: "car", Zone: "yard", Ground: &payload.Ground{Speed: 1.5, MeanSpeed: 1, Distance: 20, Heading: -1}},
		{Type: "update", Label: "car", Ground: &payload.Ground{Heading: 359.94}},
		{Type: "leave", Label: "car", Zone: "yard", Dwell: 1500 * time.Millisecond},
		{Type: "loiter", Label: "car", Zone: "yard", Dwell: time.Minute},
		{Type: "cross", Label: "car", Line: "door", Direction: "in"},
	}
	for i := range events {
		events[i].Camera, events[i].Time = "cam \"1\"/#+", now
		c.Event(&events[i])
	}
	few := frame("cam0", 1)
	few.Objects = nil
	send(c, few)
	send(c, frame("cam0", 2))
	c.Status(&payload.Status{
		Runtime:  payload.Runtime{Processors: 4, GC: -1, Capture: "as the others"},
		Accuracy: &payload.Accuracy{Precision: "fp16", Passed: true, MatchRate: 1, Time: now},
	})
	c.Status(&payload.Status{Version: "1", Started: now.Add(-time.Hour), Accuracy: &payload.Accuracy{
		Precision: "fp16", Passed: true, MatchRate: 0.99871, Boxes: 6955, Flipped: 3, Images: 1000, Time: now, Labelled: true, MAP50: 0.96,
		MAP: 0.87, ReferenceMAP50: 1,
		Refused: []payload.RefusedPrecision{{Precision: "int8", Reasons: []string{"match rate \"0.9\"", "mAP"}}},
	}, Cameras: []payload.CameraStatus{
		{Name: "a", State: "running", Slowdown: 4, RecordError: "connection refused"}, {Name: "b", State: "failed", Error: "no \"such\" file"},
	}})
	c.Stats(&payload.Stats{
		Started: now.Add(-time.Hour), Engine: time.Millisecond,
		Temperatures: []payload.Reading{{Name: "tj", Value: 51.25}, {Name: "gpu", Value: -3}},
		Power:        []payload.Reading{{Name: "VDD_IN", Value: 7.5}},
		Secondary:    []payload.SecondaryStats{{Name: "colour", Crops: 9, Missed: 2, Slow: true, Last: now}, {Name: "kind", Hangs: true}},
		Loads:        []payload.Reading{{Name: "cpu", Value: 12.5}}, PowerMode: "MAXN", Throttled: []string{"VDD_IN: over-current", "cpu: heat"},
		Cameras: []payload.CameraStats{
			{Name: "a", Captured: 30, Inferred: 29.97, LatencyP50: time.Millisecond, LatencyP99: time.Second}, {Name: "b"},
		},
	})
	c.Status(&payload.Status{Update: &payload.Update{Model: "belt", Version: 4, Phase: "trial", Candidate: 5, Refused: 3, Reason: "slow"}})
	agreement := 0.98
	job := payload.JobUpdate{Status: payload.JobFailed, Details: payload.JobDetails{
		Model: "belt", Version: 5, Reason: "slow", Agreement: &agreement,
	}}
	c.Job("belt-5", job.AppendJSON(nil, c.Device, now))
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
	}, mqtttest.Patience, time.Millisecond)
	seen := map[string]int{}
	require.Eventually(t, func() bool {
		return sub.Last("edge-infer/gate/error") != "" && len(sub.Messages("edge-infer/gate/cam \"1\"%2F%23%2B/events")) == len(events)
	},
		mqtttest.Patience, time.Millisecond)
	for _, m := range sub.All() {
		name := "discovery"
		if !strings.HasPrefix(m.Topic, "homeassistant/") {
			name = schemaOf(strings.TrimPrefix(m.Topic, "edge-infer/gate/"))
		}
		if name == "" {
			continue
		}
		assert.NoError(t, validate(t, compiled[name], m.Payload), "%s %s", m.Topic, m.Payload)
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
			`{"device":{"identifiers":["x"],"name":"n","manufacturer":"m","model":"m"},"origin":{"name":"o"},"availability":[{"topic":"a"}],"availability_mode":"all","qos":1,"components":{"a":{"platform":"sensor","name":"n","unique_id":"u"}}}`,
			`{"device":{"identifiers":["x"],"name":"n","manufacturer":"m","model":"m"},"origin":{"name":"o"},"availability":[{"topic":"a"}],"availability_mode":"all","qos":1,"components":{"a":{"platform":"sensor","name":"n","unique_id":"u","state_topic":"t","colour":"red"}}}`,
		},
	} {
		for _, payload := range payloads {
			assert.Error(t, validate(t, compiled[name], payload), "%s %s", name, payload)
		}
	}
	_, err := os.Stat("schema/README.md")
	assert.NoError(t, err)
}

func TestTimesOfAnUnsetClockAreMarked(t *testing.T) {
	compiled := schemas(t)
	floor := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		time   time.Time
		marked bool
	}{
		{time.Unix(12, 0), true},
		{floor.Add(-time.Microsecond), true},
		{floor, false},
		{time.Date(2027, 5, 6, 7, 8, 9, 0, time.UTC), false},
	} {
		for name, text := range map[string][]byte{
			"detections": (&payload.Detections{Camera: "c", Time: c.time, Width: 1, Height: 1}).AppendJSON(nil, "gate"),
			"event":      (&payload.Event{Type: "new", Camera: "c", Time: c.time}).AppendJSON(nil, "gate", "r", 1),
			"status":     (&payload.Status{}).AppendJSON(nil, "gate", c.time, nil),
			"stats":      (&payload.Stats{}).AppendJSON(nil, "gate", c.time, (&Health{}).message(c.time)),
		} {
			var got struct {
				Time  time.Time
				Clock *bool `json:"clock_set"`
			}
			require.NoError(t, json.Unmarshal(text, &got))
			assert.True(t, c.time.Equal(got.Time))
			assert.Equal(t, c.marked, got.Clock != nil && !*got.Clock, "%s", text)
			assert.NoError(t, validate(t, compiled[name], string(text)))
		}
	}
}

func TestDetailsOfDetectionsFitTheirSchema(t *testing.T) {
	schema := schemas(t)["detections"]
	for name, detail := range map[string]payload.Detail{
		"keypoints":   {Keypoints: [][3]float64{{1, 2, 0.5}, {3, 4, 1}}},
		"named":       {Keypoints: [][3]float64{{1, 2, 0.5}}, Names: []string{"hook"}},
		"turned":      {Corners: [][2]float64{{1, 2}, {3, 4}, {5, 6}, {-7, 8}}, Angle: 0.3},
		"run lengths": {Mask: payload.Mask{Counts: []byte(`52\207`), Width: 5, Height: 4}},
		"attributes":  {Attributes: []payload.Attribute{{Name: "colour", Value: "red", Score: 0.5}, {Name: "make", Value: "x", Score: 1}}},
		"embedding":   {Embedding: []byte("ADgAuA==")},
		"outlines":    {Mask: payload.Mask{Polygons: [][][2]float64{{{1, 2}, {3, 4}, {5, 6}}}}},
	} {
		d := payload.Detections{
			Camera: "c", Time: time.Unix(2e9, 0), Width: 5, Height: 4, Objects: []payload.Detection{{Label: "person", Detail: detail}},
		}
		text := string(d.AppendJSON(nil, "gate"))
		require.NoError(t, validate(t, schema, text), name)
	}
	for _, wrong := range []string{
		`"keypoints":[[1,2]]`, `"keypoints":[]`, `"angle":1`, `"corners":[[1,2],[3,4],[5,6],[7,8]]`, `"mask":{"polygons":[[1,2,3,4]]}`,
		`"mask":{"size":[4,5]}`, `"mask":{"size":[4,5],"counts":"0","polygons":[[1,2,3,4,5,6]]}`, `"mask":"off"`,
		`"attributes":{}`, `"attributes":{"colour":"red"}`, `"attributes":{"colour":{"value":"","score":1}}`,
		`"embedding":""`, `"embedding":[0.1]`,
	} {
		d := payload.Detections{Camera: "c", Time: time.Unix(2e9, 0), Width: 5, Height: 4, Objects: []payload.Detection{{Label: "person"}}}
		text := strings.Replace(string(d.AppendJSON(nil, "gate")), `"box":`, wrong+`,"box":`, 1)
		require.Error(t, validate(t, schema, text), wrong)
	}
}

func TestMapsFitTheirSchema(t *testing.T) {
	schema := schemas(t)["detections"]
	share := []payload.Share{{Label: "road", Class: 3, Share: .5}}
	for name, m := range map[string]payload.Map{
		"classes": {Whole: payload.Region{Shares: share}, Zones: []payload.Region{{Name: "yard", Shares: share}, {Name: "door"}}},
		"grid":    {Grid: payload.Grid{Width: 4, Height: 3, Classes: []payload.Area{{Label: "road", Class: 3, Counts: []byte(`066\2`)}}}},
		"depths":  {Unit: "m", Whole: payload.Region{Known: true, High: 3}, Zones: []payload.Region{{Name: "yard"}}},
		"levels":  {Unit: "relative", Grid: payload.Grid{Width: 2, Height: 1, High: 1, Levels: []byte{0, 255}}},
	} {
		d := payload.Detections{Camera: "c", Time: time.Unix(2e9, 0), Width: 5, Height: 4, Map: &m}
		require.NoError(t, validate(t, schema, string(d.AppendJSON(nil, "gate"))), name)
	}
	plain := payload.Detections{Camera: "c", Time: time.Unix(2e9, 0), Width: 5, Height: 4}
	for _, wrong := range []string{
		`"semantic":{}`, `"semantic":{"classes":[{"label":"road"}]}`, `"semantic":{"classes":[],"zones":[]}`, `"depth":{"unit":"cm"}`,
		`"depth":{"unit":"m","min":0,"median":1}`, `"depth":{"unit":"m","min":0,"median":1,"max":2,"grid":{"size":[1,1]}}`,
	} {
		text := strings.Replace(string(plain.AppendJSON(nil, "gate")), `"detections":`, wrong+`,"detections":`, 1)
		require.Error(t, validate(t, schema, text), wrong)
	}
}

func TestSensorsOfMapsFitTheirSchema(t *testing.T) {
	d := homeassistant.Discovery{Prefix: "homeassistant", Tree: topic.Tree{Root: "edge-infer", Device: "gate"}, Limit: 16 << 10}
	cameras := []homeassistant.Camera{
		{Name: "a", Classes: []string{"road", "sky"}, Zones: []string{"yard"}},
		{Name: "b", DepthUnit: "m"},
		{Name: "c", DepthUnit: "relative"},
		{Name: "d", Classifier: true, Classes: []string{"open", "shut"}},
		{Name: "e", Classifier: true},
	}
	made, _, err := d.Messages(&homeassistant.Announcement{Cameras: cameras}, nil)
	require.NoError(t, err)
	require.Len(t, made, 6)
	for _, message := range made {
		require.NoError(t, validate(t, schemas(t)["discovery"], string(message.Payload)), message.Topic)
	}
}
