package head

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

func TestParseLayout(t *testing.T) {
	for name, want := range map[string]Layout{
		"": LayoutAuto, "auto": LayoutAuto, "YOLOv5": LayoutYOLOv5, "yolov8": LayoutYOLOv8, "end2end": LayoutEnd2End, "classify": LayoutClassify,
	} {
		got, err := ParseLayout(name)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := ParseLayout("retinanet")
	assert.EqualError(t, err, `layout "retinanet" is not known (edge-infer model layouts lists them)`)
	seen := map[Layout]bool{}
	for _, h := range All() {
		assert.False(t, seen[h.Layout], "two heads are called %s", h.Layout)
		seen[h.Layout] = true
		if h.Preset != "" {
			assert.Contains(t, engine.Presets(), h.Preset)
		}
		assert.NotEmpty(t, h.Form)
		assert.NotEmpty(t, h.Networks)
		assert.NotEmpty(t, h.Task)
	}
}

// TestRFDETRNumbersItsClasses: by COCO's ids where it was published, as the labels where there is one for each. Where it was trained again
// and one number is none, nothing but whoever trained it knows which, and a guess would call every object by its neighbour's name.
func TestRFDETRNumbersItsClasses(t *testing.T) {
	for _, c := range []struct {
		scores, labels int
		classes        map[int]int // by the network's number; -1 for none, those from labels on are none as well
	}{
		{91, 80, map[int]int{0: -1, 1: 0, 90: 79, 12: -1}},
		{91, 91, map[int]int{0: 0, 1: 1, 90: 90}},
		{91, 90, map[int]int{0: -1, 1: 0, 90: 89}},
		{7, 6, nil},
		{8, 6, map[int]int{0: -1, 1: 0, 6: 5}},
		{7, 7, map[int]int{0: 0, 6: 6}},
	} {
		m := &engine.Model{
			Outputs: []engine.TensorInfo{
				{Name: "dets", Type: engine.Float32, Shape: []int64{1, 300, 4}},
				{Name: "labels", Type: engine.Float32, Shape: []int64{1, 300, int64(c.scores)}},
			},
			Width: 384, Height: 384, Metadata: engine.Metadata{Labels: make([]string, c.labels)},
		}
		if c.labels == cocoClasses {
			m.Metadata.Labels = engine.KnownLabels("coco")
		}
		f, err := recognise(m, LayoutAuto)
		if c.classes == nil {
			require.ErrorContains(t, err, "a label for none is missing, first in early versions, else last")
			_, err = recognise(m, LayoutRFDETR)
			require.ErrorContains(t, err, "7 classes but the model has 6 labels")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, LayoutRFDETR, f.describe().Layout)
		for number, class := range c.classes {
			require.Equal(t, class, f.numbers.class(number), "%d of %d with %d labels", number, c.scores, c.labels)
		}
	}
}

// TensorFlow Lite numbers classes from 0 without a background: label files with one are a line ahead of it, and COCO's ids one behind.
func TestTFLiteNumbersWithoutBackground(t *testing.T) {
	const name = "TFLite_Detection_PostProcess"
	m := &engine.Model{
		Outputs: []engine.TensorInfo{
			{Name: name, Type: engine.Float32, Shape: []int64{1, 10, 4}},
			{Name: name + ":1", Type: engine.Float32, Shape: []int64{1, 10}},
			{Name: name + ":2", Type: engine.Float32, Shape: []int64{1, 10}},
			{Name: name + ":3", Type: engine.Float32, Shape: []int64{1}},
		},
		Width: 300, Height: 300,
	}
	for _, c := range []struct {
		labels  []string
		classes map[int]int
	}{
		{nil, map[int]int{0: 0, 36: 36}},
		{[]string{"cat", "dog"}, map[int]int{0: 0, 1: 1}},
		{[]string{"???", "cat", "dog"}, map[int]int{0: 1, 1: 2}},
		{make([]string, 91), map[int]int{0: 1, 89: 90}},
		{engine.KnownLabels("coco"), map[int]int{0: 0, 11: -1, 89: 79}},
		{make([]string, 80), map[int]int{0: 0, 11: 11, 79: 79}},
	} {
		m.Metadata.Labels = c.labels
		f, err := recognise(m, LayoutAuto)
		require.NoError(t, err)
		require.Equal(t, LayoutTFDetection, f.describe().Layout)
		require.Equal(t, []int{0, 2, 1, 3}, f.outputs, "boxes, scores, classes, number")
		for number, class := range c.classes {
			require.Equal(t, class, f.numbers.class(number), "%d with %d labels", number, len(c.labels))
		}
	}
}
