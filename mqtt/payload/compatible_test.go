package payload

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeepStreamMessage(t *testing.T) {
	d := Detections{
		Camera: "gate", Sequence: 812, Time: time.Date(2026, 11, 20, 10, 11, 12, 345_678_000, time.UTC), Width: 1920, Height: 1080,
		Objects: []Detection{
			{Label: "person", Score: 0.914, Box: [4]float64{412, 88.5, 655.25, 690.125}, Track: 17},
			{Label: `a|"b"`, Box: [4]float64{1, 2, 3, 4}},
			{
				Label: "car", Score: 0.5, Track: 3, Box: [4]float64{1, 2, 3, 4},
				Detail: Detail{Attributes: []Attribute{{Name: "colour", Value: "red", Score: 0.9}, {Name: "make", Value: "x|y"}}},
			},
		},
	}
	want := `{"version":"4.0","id":"812","@timestamp":"2026-11-20T10:11:12.345Z","sensorId":"gate","objects":[` +
		`"17|412|88.5|655.25|690.125|person","18446744073709551615|1|2|3|4|a \"b\"","3|1|2|3|4|car|#|red|x y|0.5"]}`
	text := d.AppendDeepStream(nil)
	assert.Equal(t, want, string(text))
	assert.Zero(t, testing.AllocsPerRun(20, func() { text = d.AppendDeepStream(text[:0]) }))
	d.Objects = nil
	assert.True(t, strings.HasSuffix(string(d.AppendDeepStream(nil)), `"objects":[]}`))
}

// FuzzDeepStream: whatever a label holds, a reader that splits objects at | finds the fields in their places.
func FuzzDeepStream(f *testing.F) {
	f.Add("person", "red", 1.5)
	f.Add("a|b\\", "\"|\n\xff", -3e9)
	f.Fuzz(func(t *testing.T, label, value string, side float64) {
		d := Detections{Camera: label, Objects: []Detection{{
			Label: label, Box: [4]float64{side, side, side, side}, Track: 5, Detail: Detail{Attributes: []Attribute{{Name: "n", Value: value}}},
		}}}
		var message struct {
			Sensor  string `json:"sensorId"`
			Objects []string
		}
		require.NoError(t, json.Unmarshal(d.AppendDeepStream(nil), &message))
		require.Len(t, message.Objects, 1)
		fields := strings.Split(message.Objects[0], "|")
		require.Len(t, fields, 9)
		for _, number := range append(fields[:5:5], fields[8]) {
			_, err := strconv.ParseFloat(number, 64)
			require.NoError(t, err)
		}
		require.Equal(t, "#", fields[6])
	})
}

func TestFrigateEvent(t *testing.T) {
	start := time.Date(2026, 11, 20, 10, 11, 12, 345_678_000, time.UTC)
	before := Tracked{
		Object: "1795169472.345678-17", Camera: "gate", Label: "person", Time: start, Start: start, Score: 0.5, TopScore: 0.75,
		Box: [4]float64{10.9, 20, 110, 70}, Width: 1920, Height: 1080,
	}
	after := before
	after.Time, after.End = start.Add(time.Second), start.Add(time.Second)
	after.Zones, after.Entered, after.Stationary = []string{"yard"}, []string{"yard", "b"}, true
	after.Attributes = []Attribute{{Name: "face", Value: "Ann", Score: 0.8}}
	text := AppendFrigate(nil, "end", &before, &after)
	assert.JSONEq(t, `{"type":"end",
		"before":{"id":"1795169472.345678-17","camera":"gate","frame_time":1795169472.345678,"snapshot":null,"label":"person","sub_label":null,
			"top_score":0.75,"false_positive":false,"start_time":1795169472.345678,"end_time":null,"score":0.5,"box":[10,20,110,70],
			"area":5000,"ratio":2,"region":[0,0,1920,1080],"active":true,"stationary":false,"current_zones":[],"entered_zones":[],
			"has_clip":false,"has_snapshot":false,"attributes":{},"current_attributes":[]},
		"after":{"id":"1795169472.345678-17","camera":"gate","frame_time":1795169473.345678,"snapshot":null,"label":"person",
			"sub_label":["Ann",0.8],"top_score":0.75,"false_positive":false,"start_time":1795169472.345678,"end_time":1795169473.345678,"score":0.5,
			"box":[10,20,110,70],"area":5000,"ratio":2,"region":[0,0,1920,1080],"active":false,"stationary":true,"current_zones":["yard"],
			"entered_zones":["yard","b"],"has_clip":false,"has_snapshot":false,"attributes":{},"current_attributes":[]}}`, string(text))
	assert.Contains(t, string(text), `"frame_time":1795169472.345678,`, "no digit of the time is lost")
}

func TestFrigateStats(t *testing.T) {
	start := time.Date(2026, 11, 20, 10, 11, 12, 0, time.UTC)
	s := Stats{Started: start, Engine: 4 * time.Millisecond, Cameras: []CameraStats{
		{Name: "gate", Captured: 30, Inferred: 20, DroppedMotion: 4, DroppedNewer: 6}, {Name: `y"d`, Captured: 10, Inferred: 10},
	}}
	assert.JSONEq(t, `{"cameras":{"gate":{"camera_fps":30,"process_fps":24,"skipped_fps":6,"detection_fps":20},
			"y\"d":{"camera_fps":10,"process_fps":10,"skipped_fps":0,"detection_fps":10}},
		"detectors":{"edge-infer":{"inference_speed":4}},"camera_fps":40,"process_fps":34,"skipped_fps":6,"detection_fps":30,
		"service":{"uptime":60,"last_updated":1795169532}}`, string(s.AppendFrigate(nil, start.Add(time.Minute))))
}

func fullSchema(t testing.TB) *jsonschema.Schema {
	schema, err := jsonschema.NewCompiler().Compile("../schema/compatible/deepstream-full.schema.json")
	require.NoError(t, err)
	return schema
}

func TestDeepStreamEvent(t *testing.T) {
	schema := fullSchema(t)
	e := Event{
		Type: "enter", Camera: "gate", Time: time.Date(2026, 11, 20, 10, 11, 12, 345_678_000, time.UTC), Label: "car", Score: 0.914,
		Object: "1795169472.345678-17", Box: [4]float64{412.9, 88.5, 655.25, 690.125}, Zone: "yard", Zones: []string{"yard"},
		Ground: &Ground{Speed: 1.5, Heading: 90}, Attributes: []Attribute{{Name: "color", Value: "blue", Score: 0.9}},
	}
	text := e.AppendDeepStream(nil, "house", "r-8", "r-7", &AnalyticsModule{ID: "best.onnx", Version: "1.2"})
	assert.JSONEq(t, `{"messageid":"r-8","mdsversion":"1.0","@timestamp":"2026-11-20T10:11:12.345Z",
		"place":{"id":"yard","name":"yard","type":"zone","location":{}},
		"sensor":{"id":"gate","type":"Camera","description":"house","location":{},"coordinate":{}},
		"analyticsModule":{"id":"best.onnx","description":"objects detected and followed","source":"edge-infer","version":"1.2"},
		"object":{"id":"1795169472.345678-17","speed":1.5,"direction":90,"orientation":0,"car":{"confidence":0.914,"color":"blue"},
			"bbox":{"topleftx":412,"toplefty":88,"bottomrightx":655,"bottomrighty":690},"location":{},"coordinate":{}},
		"event":{"id":"r-7","type":"entry"},"videoPath":""}`, string(text))
	for _, kind := range []struct {
		event Event
		want  string
	}{
		{Event{Type: "new"}, "entry"},
		{Event{Type: "end"}, "exit"},
		{Event{Type: "update"}, "moving"},
		{Event{Type: "update", Stationary: true}, "stopped"},
		{Event{Type: "leave"}, "exit"},
		{Event{Type: "loiter"}, "parked"},
		{Event{Type: "cross", Direction: "in"}, "entry"},
		{Event{Type: "cross", Direction: "out"}, "exit"},
		{Event{Type: "appear"}, ""},
	} {
		assert.Equal(t, kind.want, DeepStreamType(&kind.event), kind.event.Type)
	}
	for _, label := range []string{"", "bbox", "id", "person"} { // a label is one field of the object, whatever it is called
		e.Label = label
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.AppendDeepStream(nil, "house", "r-8", "r-7", &AnalyticsModule{})))
		require.NoError(t, err)
		assert.NoError(t, schema.Validate(value), label)
	}
}

// FuzzDeepStreamEvent: names and labels of users leave the message in the schema.
func FuzzDeepStreamEvent(f *testing.F) {
	f.Add("gate", "person", "colour", "red", 1.5)
	f.Add("a\"b", "location", "confidence", "\n\xff", -3e9)
	schema := fullSchema(f)
	f.Fuzz(func(t *testing.T, camera, label, name, value string, side float64) {
		e := Event{
			Type: "new", Camera: "c" + camera, Label: label, Object: "1-1", Score: side, Box: [4]float64{side, side, side, side},
			Time: time.Unix(2e9, 0), Line: camera, Ground: &Ground{Speed: side, Heading: -1}, Attributes: []Attribute{{Name: name, Value: value}},
		}
		text := e.AppendDeepStream(nil, label, "m", "e", &AnalyticsModule{ID: name, Version: value})
		message, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(message))
	})
}
