package judge

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/labelled"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func model(task engine.Task, labels ...string) *predict.Model {
	m := &predict.Model{Recognised: head.Recognition{Description: head.Description{Task: task}}}
	m.Metadata.Labels = labels
	return m
}

func TestWhatIsUnsuitable(t *testing.T) {
	running := model(engine.Detect, "nut", "bolt")
	for want, candidate := range map[string]*predict.Model{
		"": model(engine.Detect, "nut", "bolt"),
		"it is a network for classify, not for detect":            model(engine.Classify, "nut", "bolt"),
		`it has other class names, "screw" in the place of "nut"`: model(engine.Detect, "screw", "bolt"),
		"it has other class names, 3 instead of 2":                model(engine.Detect, "nut", "bolt", "screw"),
		"it has other class names, 1 instead of 2":                model(engine.Detect, "nut"),
	} {
		assert.Equal(t, want, Unsuitable(running, candidate))
	}
}

func TestOnlyReportedBoxesAreCompared(t *testing.T) {
	r := Request{Confidence: 0.5}
	all := []postprocess.Detection{{Score: 0.9}, {Score: 0.5}, {Score: 0.4}}
	boxes := &side{found: [][]postprocess.Detection{all}}
	assert.Len(t, r.reported(boxes, 0), 2)
	boxes.model.Recognised.Task = engine.Classify
	assert.Len(t, r.reported(boxes, 0), 1)
	boxes.found[0] = nil
	assert.Empty(t, r.reported(boxes, 0))
}

// TestLabelledImages measure both models, and only detectors on the images that the labels are for.
func TestLabelledImages(t *testing.T) {
	box := postprocess.Box{X1: 1, Y1: 1, X2: 9, Y2: 9}
	set := &labelled.Set{Labels: []string{"nut"}, Images: []labelled.Image{{
		Width: 10, Height: 10, Objects: []labelled.Object{{Box: [4]float32{1, 1, 9, 9}}},
	}}}
	seen := func(found ...postprocess.Detection) *side {
		size := engine.Size{Width: 10, Height: 10}
		return &side{model: *model(engine.Detect, "bolt", "nut"), found: [][]postprocess.Detection{nil, found}, sizes: []engine.Size{{}, size}}
	}
	good, blind := seen(postprocess.Detection{Box: box, Class: 1, Score: 0.9}), seen()
	got, err := measure(set, good, blind, 1)
	require.NoError(t, err)
	assert.InDelta(t, 1, got.Running, 1e-9)
	assert.Zero(t, got.Candidate)
	assert.Equal(t, 1, got.Images)
	good.sizes[1].Width = 20
	_, err = measure(set, good, blind, 1)
	require.EqualError(t, err, "labelled image 1 has 20x10 pixels, its labels are for 10x10")
	good.model.Metadata.Labels = []string{"bolt"}
	_, err = measure(set, good, blind, 1)
	require.ErrorContains(t, err, `objects labelled "nut", which the model does not have`)
	good.model.Recognised.Task = engine.Classify
	_, err = measure(set, good, blind, 1)
	require.EqualError(t, err, "labelled images measure detectors, this is a network for classify")

	r := Request{Labelled: "none"}
	_, err = r.labelled()
	require.ErrorContains(t, err, "labelled images: ")
}

// FuzzServe: whatever the parent sends, the process answers or ends with an error.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"payload": 3, "request": {"images": [1, 2]}}`+"\nabc"), false)
	f.Add([]byte(`{"payload": 3, "request": {"images": [4]}}`+"\nabc"), true)
	f.Add([]byte(`{"payload": 0, "request": {"group": {"Network": {"Model": {"Path": "none"}}}, "running": {"path": "none"}}}`+"\n"), true)
	f.Fuzz(func(t *testing.T, in []byte, _ bool) {
		held, end := io.Pipe()
		defer end.Close()
		var out bytes.Buffer
		if Serve(t.Context(), io.MultiReader(bytes.NewReader(in), held), &out) != nil {
			return
		}
		for line := range bytes.Lines(out.Bytes()) {
			require.NoError(t, json.Unmarshal(line, new(answer)))
		}
	})
}
