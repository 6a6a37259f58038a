package mqtt

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

var update = flag.Bool("update", false, "write the generated page anew")

const messagesPage = "../docs/mqtt-messages.md"

// field is what the page says of a value of a schema.
type field struct {
	Type        any
	Description string
	Properties  map[string]*field
	Additional  json.RawMessage `json:"additionalProperties"`
	Items       *field
	Required    []string
	Enum        []any
	Const       any
	OneOf       []*field `json:"oneOf"`
}

// TestMessagesPage holds docs/mqtt-messages.md against the schemas and the encoders that it is made of; -update writes it.
func TestMessagesPage(t *testing.T) {
	page := messagesOf(t)
	if *update {
		require.NoError(t, os.WriteFile(messagesPage, page, 0o644))
	}
	have, err := os.ReadFile(messagesPage)
	require.NoError(t, err)
	require.Equal(t, string(page), string(have), "run go test ./mqtt -run TestMessagesPage -update")
}

func messagesOf(t *testing.T) []byte {
	var page bytes.Buffer
	page.WriteString(`# MQTT messages, field by field

Made by ` + "`go test ./mqtt -run TestMessagesPage -update`" + ` from the schemas in [mqtt/schema](../mqtt/schema) and from the encoders of the program; edit those.
A test compares them. [MQTT](mqtt.md) lists topics and retention. A field without "always" is absent if it does not apply.
`)
	compiled := schemas(t)
	for _, m := range messageExamples() {
		require.NoError(t, validate(t, compiled[m.schema], m.text), m.schema)
		data, err := os.ReadFile("schema/" + m.schema + ".schema.json")
		require.NoError(t, err)
		var schema field
		require.NoError(t, json.Unmarshal(data, &schema))
		var pretty bytes.Buffer
		require.NoError(t, json.Indent(&pretty, []byte(m.text), "", "  "))
		fmt.Fprintf(&page, "\n## `%s`\n\n", m.topic)
		if len(schema.Properties) > 0 {
			page.WriteString("| field | | type | meaning |\n|---|---|---|---|\n")
			rows(&page, "", &schema)
			page.WriteString("\n")
		}
		fmt.Fprintf(&page, "```json\n%s\n```\n", pretty.String())
	}
	return page.Bytes()
}

// rows writes a line for each field of an object, those inside of it below it.
func rows(page *bytes.Buffer, prefix string, of *field) {
	names := make([]string, 0, len(of.Properties))
	for name := range of.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f := of.Properties[name]
		always := ""
		if slices.Contains(of.Required, name) {
			always = "always"
		}
		fmt.Fprintf(page, "| `%s%s` | %s | %s | %s |\n", prefix, name, always, kindOf(f), strings.ReplaceAll(f.Description, "|", "\\|"))
		rows(page, prefix+name+".", f)
		if f.Items != nil {
			rows(page, prefix+name+"[].", f.Items)
		}
		var each field
		if json.Unmarshal(f.Additional, &each) == nil {
			rows(page, prefix+name+".*.", &each)
		}
	}
}

func kindOf(f *field) string {
	switch {
	case f.Const != nil:
		return fmt.Sprintf("`%v`", f.Const)
	case len(f.Enum) > 0:
		words := make([]string, len(f.Enum))
		for i, word := range f.Enum {
			words[i] = fmt.Sprintf("`%v`", word)
		}
		return strings.Join(words, ", ")
	case f.Items != nil && f.Type == "array":
		return "array of " + kindOf(f.Items)
	case f.Type == nil:
		return "one of several"
	}
	return fmt.Sprint(f.Type)
}

// messageExample is a message as the program writes it.
type messageExample struct{ topic, schema, text string }

func messageExamples() []messageExample {
	at := time.Date(2026, 11, 20, 10, 11, 12, 345_678_000, time.UTC)
	box := [4]float64{412, 88.5, 655.2, 690.1}
	colour := []payload.Attribute{{Name: "colour", Value: "red", Score: 0.93}}
	detections := payload.Detections{
		Camera: "cam0", Sequence: 812, Time: at, Width: 1920, Height: 1080, Latency: 9400 * time.Microsecond,
		Objects: []payload.Detection{{Label: "car", Class: 2, Score: 0.914, Box: box, Track: 17, Detail: payload.Detail{Attributes: colour}}},
	}
	event := payload.Event{
		Type: "end", Camera: "cam0", Sequence: 812, Time: at, Label: "car", Class: 2, Score: 0.914, TopScore: 0.951, Median: 0.92,
		Object: "1795169462.112233-17", Box: box, Track: 17, Start: at.Add(-10 * time.Second), End: at, Entered: []string{"yard"},
		Path: [][2]float64{{101, 690}, {533.6, 690.1}}, Attributes: colour,
	}
	status := payload.Status{
		Version: "1.0.0", Started: at.Add(-time.Hour), Backend: "tensorrt", Reason: "tensorrt works", Hardware: "GPU 0", Model: "yolo11n.onnx",
		Precision: "fp16", Cameras: []payload.CameraStatus{{Name: "cam0", State: "running"}},
	}
	job := payload.JobUpdate{Status: payload.JobInProgress, Details: payload.JobDetails{Phase: "trial", Model: "belt", Version: 5}}
	stats := payload.Stats{
		Started: at.Add(-time.Hour), Engine: 3 * time.Millisecond, Temperatures: []payload.Reading{{Name: "tj", Value: 51.25}},
		Cameras: []payload.CameraStats{{
			Name: "cam0", Captured: 30, Inferred: 30, LatencyP50: 9 * time.Millisecond, LatencyP99: 14 * time.Millisecond,
		}},
		Stages: []payload.StageStats{{Name: "network", P50: 3 * time.Millisecond, P99: 4 * time.Millisecond, Max: 9 * time.Millisecond}},
	}
	return []messageExample{
		{"<camera>/detections", "detections", string(detections.AppendJSON(nil, "gate"))},
		{"<camera>/events", "event", string(event.AppendJSON(nil, "gate", "5f1c", 42))},
		{"<camera>/line/<line>", "line", `{"in":12,"out":3}`},
		{"status", "status", string(status.AppendJSON(nil, "gate", at, nil))},
		{"jobs/<id>/update", "job", string(job.AppendJSON(nil, "gate", at))},
		{"stats", "stats", string(stats.AppendJSON(nil, "gate", at, (&Health{}).message(at)))},
	}
}
