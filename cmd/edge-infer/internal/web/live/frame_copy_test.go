package live

import (
	"encoding/json"
	"image"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestTheFrameMessageShowsMasksPointsAndTurnedBoxes(t *testing.T) {
	mask := &postprocess.Mask{Bounds: image.Rect(10, 10, 30, 30), Width: 40, Height: 40, StepX: 1, StepY: 1, Logits: make([]float32, 1600)}
	for i := range mask.Logits {
		mask.Logits[i] = 1
	}
	detail := &postprocess.Detail{
		Mask: mask, Keypoints: []postprocess.Keypoint{{X: 12.34, Y: 20, Score: 0.876}},
		Oriented: &postprocess.OrientedBox{X: 20, Y: 20, Width: 8, Height: 4},
	}
	detection := postprocess.Detection{Box: postprocess.Box{X1: 10, Y1: 10, X2: 30, Y2: 30}, Score: 0.9, Detail: detail}
	in := &pipeline.Result{
		Camera: "gate", Width: 64, Height: 48, Labels: []string{"person"}, Detections: []postprocess.Detection{detection, {Score: 0.5}},
		Tracks: []postprocess.Track{{ID: 1, Detection: detection}},
	}
	in.Tracks[0].State = postprocess.Lost
	var o frameCopy
	o.copy(in)
	detail.Keypoints[0].X, detail.Oriented.X = 0, 0 // the memory belongs to the next frame now
	text, err := json.Marshal(o.message().Detections)
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"label":"person","class":0,"score":0.9,"box":[10,10,30,30],"keypoints":[[12.34,20,0.876]],
		 "angle":0,"corners":[[24,22],[24,18],[16,18],[16,22]],"mask":{"polygons":[[10,10,30,10,30,30,10,30]]}},
		{"label":"person","class":0,"score":0.5,"box":[0,0,0,0]}]`, string(text))
	lost, err := json.Marshal(o.message().Lost)
	require.NoError(t, err)
	require.JSONEq(t, `[{"label":"person","class":0,"score":0.9,"box":[10,10,30,30],"track":1}]`, string(lost),
		"its mask was of another frame")
	require.Zero(t, testing.AllocsPerRun(10, func() { o.copy(in) }))
}

func TestTheFrameMessageShowsMaps(t *testing.T) {
	half := zone.Zone{Name: "right", Points: []zone.Point{{X: .5}, {X: 1}, {X: 1, Y: 1}, {X: .5, Y: 1}}}
	survey := &zone.MapStats{Config: zone.Config{Zones: []zone.Zone{half}}}
	m := &postprocess.DenseMap{Width: 2, Height: 1, StepX: 1. / 32, StepY: 1. / 48, X: -.484375, Classes: []uint8{0, postprocess.NoClass}}
	in := &pipeline.Result{Camera: "gate", Width: 64, Height: 48, Labels: []string{"road"}, Map: m, MapStats: survey}
	survey.Measure(m, 64, 48)
	var o frameCopy
	o.copy(in)
	m.Classes[1] = 0 // the memory belongs to the next frame now
	message := o.message()
	text, err := json.Marshal(message.Semantic)
	require.NoError(t, err)
	require.JSONEq(t, `{"classes":[{"label":"road","class":0,"share":0.5}],"zones":{"right":{"classes":[]}}}`, string(text))
	require.Equal(t, []int{gridSide, gridSide * 3 / 4}, []int{message.Map.Width, message.Map.Height})
	require.Equal(t, uint8(0), message.Map.Cells[gridSide/2-1])
	require.Equal(t, uint8(postprocess.NoClass), message.Map.Cells[gridSide/2])
	require.Zero(t, testing.AllocsPerRun(10, func() { o.copy(in) }))
	m.Classes, m.Depths = nil, []float32{1, 5}
	survey.Measure(m, 64, 48)
	o.copy(in)
	text, err = json.Marshal(o.message().Depth)
	require.NoError(t, err)
	require.JSONEq(t, `{"unit":"relative","min":1,"median":1,"max":5,"zones":{"right":{"min":5,"median":5,"max":5}}}`, string(text))
	require.Equal(t, []uint8{1, 255}, []uint8{o.message().Map.Cells[0], o.message().Map.Cells[gridSide-1]})
	o.copy(&pipeline.Result{Camera: "gate", Width: 64, Height: 48})
	require.Nil(t, o.message().Map)
}

func TestNumbersThatJSONHasNot(t *testing.T) {
	zero := float32(0)
	var o frameCopy
	o.copy(&pipeline.Result{Detections: []postprocess.Detection{{Score: zero / zero, Class: 9, Box: postprocess.Box{X1: 1 / zero}}}})
	data, err := json.Marshal(o.message())
	require.NoError(t, err)
	require.Contains(t, string(data), `"detections":[{"label":"class 9","class":9,"score":0,"box":[0,0,0,0]}]`)
}

func TestListsOfTheFrameMessageAreNeverNull(t *testing.T) {
	message, err := json.Marshal((&frameCopy{camera: "a"}).message())
	require.NoError(t, err)
	require.NotContains(t, string(message), "null")
}
