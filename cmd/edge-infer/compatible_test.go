package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// publishedFor starts the program with a demo camera "belt", the device name "gate" and settings of the environment, and returns what its
// broker receives.
func publishedFor(t *testing.T, environment ...string) <-chan string {
	t.Helper()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	lines := programtest.Subscribe(t, port, "#")
	p := programtest.StartWith(t, environment, "--camera", "belt=demo?width=640&height=360", "--mqtt",
		fmt.Sprintf("tcp://127.0.0.1:%d", port), "--name", "gate", "--json")
	p.Discard()
	return lines
}

// What is published for consumers of Frigate and of DeepStream is as they expect it: of each object first new, then updates, at last end,
// each with the object as the event before told it; and a frame's objects as fields between bars.
func TestOutputsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	lines := publishedFor(t, "EDGE_INFER_MQTT_FRIGATE=frigate", "EDGE_INFER_MQTT_DEEPSTREAM=deepstream")
	var received []string
	for _, last := range []string{`frigate/events {"type":"end"`, "|", "frigate/belt/"} {
		received = append(received, programtest.Until(t, lines, last)...)
	}

	type object struct {
		ID, Camera, Label string
		EndTime           *float64 `json:"end_time"`
		FrameTime         float64  `json:"frame_time"`
		CurrentZones      []string `json:"current_zones"`
	}
	latest := map[string]json.RawMessage{}
	kinds := map[string]int{}
	events := programtest.Payloads(received, "frigate/events")
	require.NotEmpty(t, events)
	for _, text := range events {
		var e struct {
			Type          string
			Before, After json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(text), &e), text)
		var after object
		require.NoError(t, json.Unmarshal(e.After, &after))
		before, known := latest[after.ID]
		assert.Equal(t, e.Type != "new", known, text)
		if known {
			assert.JSONEq(t, string(before), string(e.Before))
		}
		assert.Equal(t, e.Type == "end", after.EndTime != nil, text)
		assert.Equal(t, "belt", after.Camera)
		assert.NotNil(t, after.CurrentZones)
		latest[after.ID] = e.After
		kinds[e.Type]++
	}
	assert.NotZero(t, kinds["new"])

	frames := programtest.Payloads(received, "deepstream")
	require.NotEmpty(t, frames)
	seen := 0
	for _, text := range frames {
		var frame struct {
			Version, ID, SensorID string
			Objects               []string
		}
		require.NoError(t, json.Unmarshal([]byte(text), &frame), text)
		assert.Equal(t, "4.0", frame.Version)
		assert.Equal(t, "belt", frame.SensorID)
		for _, text := range frame.Objects {
			fields := strings.Split(text, "|")
			require.Len(t, fields, 6, text)
			for _, number := range fields[:5] {
				_, err := strconv.ParseFloat(number, 64)
				assert.NoError(t, err, text)
			}
			seen++
		}
	}
	assert.NotZero(t, seen)
}

// Each event of an object is a message in DeepStream's full schema, which names the camera, the model and the event.
func TestDeepStreamsFullSchema(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("../../mqtt/schema/compatible/deepstream-full.schema.json")
	require.NoError(t, err)
	lines := publishedFor(t, "EDGE_INFER_MQTT_DEEPSTREAM=deepstream", "EDGE_INFER_MQTT_DEEPSTREAM_SCHEMA=full")
	received := programtest.Until(t, lines, `"type":"exit"`)
	ids, kinds := map[string]bool{}, map[string]int{}
	for _, text := range programtest.Payloads(received, "edge-infer/gate/belt/events") {
		var e struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		ids[e.ID] = true
	}
	for _, text := range programtest.Payloads(received, "deepstream") {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		require.NoError(t, err, text)
		require.NoError(t, schema.Validate(value), text)
		var m struct {
			Sensor, AnalyticsModule struct{ ID string }
			Event                   struct{ ID, Type string }
		}
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		assert.Equal(t, "belt", m.Sensor.ID)
		assert.Equal(t, "demo", m.AnalyticsModule.ID)
		assert.True(t, ids[m.Event.ID], "an event that came before: %s", text)
		kinds[m.Event.Type]++
	}
	assert.NotZero(t, kinds["entry"])
}
