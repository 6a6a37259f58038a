package payload

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

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
