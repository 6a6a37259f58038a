package payload

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfKeypointsAreSaidOnceAMessage(t *testing.T) {
	crane := Detection{Label: "crane", Class: 1, Detail: Detail{Keypoints: make([][3]float64, 2), Names: []string{"hook", "b\"om"}}}
	fork := Detection{Label: "fork", Detail: Detail{Keypoints: make([][3]float64, 2), Names: []string{"tip", "mast"}}}
	bare := Detection{Label: "box", Class: 2, Detail: Detail{Keypoints: make([][3]float64, 1)}}
	d := Detections{Objects: []Detection{bare, crane, fork, crane, bare}}
	var got struct {
		Names map[string][]string `json:"keypoint_names"`
	}
	text := d.AppendJSON(nil, "gate")
	require.NoError(t, json.Unmarshal(text, &got), "%s", text)
	want := map[string][]string{"crane": {"hook", "b\"om"}, "fork": {"tip", "mast"}}
	require.Equal(t, want, got.Names)
	require.Equal(t, want, crane.AddNames(fork.AddNames(bare.AddNames(nil))))
	require.Zero(t, testing.AllocsPerRun(5, func() { _ = d.AppendJSON(text[:0], "gate") }))
	d.Objects = []Detection{bare}
	require.NotContains(t, string(d.AppendJSON(nil, "gate")), "keypoint_names")
}

func TestDetailsOfADetection(t *testing.T) {
	for name, c := range map[string]struct {
		detail Detail
		want   string
	}{
		"none":      {Detail{}, ``},
		"keypoints": {Detail{Keypoints: [][3]float64{{1.25, 2, 0.5}, {0, 0, 0}}}, `,"keypoints":[[1.25,2,0.5],[0,0,0]]`},
		"turned": {
			Detail{Corners: [][2]float64{{1, 2}, {3, 4}, {5, 6}, {7, 8.1234}}, Angle: -0.25},
			`,"angle":-0.25,"corners":[[1,2],[3,4],[5,6],[7,8.123]]`,
		},
		"run lengths": {
			Detail{Mask: Mask{Counts: []byte(`5\2o0`), Width: 640, Height: 480}}, `,"mask":{"size":[480,640],"counts":"5\\2o0"}`,
		},
		"outlines": {
			Detail{Mask: Mask{Polygons: [][][2]float64{{{1, 2}, {3, 4}, {5, 6.5}}, {{7, 8}, {9, 1}, {2, 3}}}}},
			`,"mask":{"polygons":[[1,2,3,4,5,6.5],[7,8,9,1,2,3]]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, string(c.detail.appendJSON(nil)))
			d := Detection{Label: "person", Detail: c.detail}
			text := d.appendJSON(nil, AppendDecimal)
			require.True(t, json.Valid(text), "%s", text)
			require.Zero(t, testing.AllocsPerRun(20, func() { text = d.appendJSON(text[:0], AppendDecimal) }))
		})
	}
}

// TestExactDetectionsKeepEveryDigit: their numbers are those that encoding/json writes for float32s.
func TestExactDetectionsKeepEveryDigit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		want := struct {
			Label string     `json:"label"`
			Class int        `json:"class"`
			Score float32    `json:"score"`
			Box   [4]float32 `json:"box"`
		}{Label: `<"bolt">`, Class: 7, Score: float32(math.Exp(-20 * random.Float64()))}
		got := Exact{Detection{Label: want.Label, Class: 7, Score: float64(want.Score)}}
		for i := range want.Box {
			want.Box[i] = float32(4000*random.Float64() - 10)
			got.Box[i] = float64(want.Box[i])
		}
		expected, err := json.Marshal(want)
		require.NoError(t, err)
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, string(expected), string(text))
	}
	text, err := json.Marshal(Exact{Detection{Score: math.NaN(), Track: 3}})
	require.NoError(t, err)
	require.Equal(t, `{"label":"","class":0,"score":0,"box":[0,0,0,0],"track":3}`, string(text))
}
