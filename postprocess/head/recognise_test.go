package head

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// sized is described for an input of another size and with a task.
func sized(width, height int, task engine.Task, labels int, shapes ...[]int64) *engine.Model {
	m := described(labels, shapes...)
	m.Width, m.Height, m.Metadata.Task = width, height, task
	return m
}

func endToEndModel(labels int, shapes ...[]int64) *engine.Model {
	m := described(labels, shapes...)
	m.Metadata.Task, m.Metadata.EndToEnd = engine.Detect, true
	return m
}

// TestRecognise is as long as its table of outputs.
func TestRecognise(t *testing.T) {
	for _, c := range []struct {
		name     string
		o        Options
		m        *engine.Model
		layout   Layout
		classes  int
		output   int
		evidence string
	}{
		{
			"yolov8",
			Options{},
			described(80, []int64{1, 84, 8400}), LayoutYOLOv8, 80, 0,
			"output0 [1 84 8400]: 8400 anchors at strides 8, 16, 32 of 640x640; 80 classes",
		},
		{
			"yolov8 of any size",
			Options{},
			sized(640, 640, engine.Detect, 80, []int64{-1, 84, -1}), LayoutYOLOv8, 80, 0,
			"output0 [-1 84 -1]: the file specifies detection; 80 classes",
		},
		{
			"yolov8 wide input",
			Options{},
			sized(640, 384, "", 6, []int64{4, 10, 5040}), LayoutYOLOv8, 6, 0,
			"output0 [4 10 5040]: 5040 anchors at strides 8, 16, 32 of 640x384; 6 classes",
		},
		{
			"yolov8 of one class",
			Options{},
			described(1, []int64{1, 5, 8400}), LayoutYOLOv8, 1, 0,
			"output0 [1 5 8400]: 8400 anchors at strides 8, 16, 32 of 640x640; 1 class",
		},
		{
			"yolov8 with a fourth scale",
			Options{},
			sized(1280, 1280, "", 80, []int64{1, 84, 34000}), LayoutYOLOv8, 80, 0,
			"output0 [1 84 34000]: 34000 anchors at strides 8, 16, 32, 64 of 1280x1280; 80 classes",
		},
		{
			"yolov8 with a finer scale",
			Options{},
			described(80, []int64{1, 84, 34000}), LayoutYOLOv8, 80, 0,
			"output0 [1 84 34000]: 34000 anchors at strides 4, 8, 16, 32 of 640x640; 80 classes",
		},
		{
			"tiny",
			Options{},
			described(80, []int64{1, 84, 2000}), LayoutYOLOv8, 80, 0,
			"output0 [1 84 2000]: 2000 anchors at strides 16, 32 of 640x640; 80 classes",
		},
		{
			"yolov8 with its raw maps",
			Options{},
			described(80, []int64{1, 84, 8400}, []int64{1, 144, 80, 80}, []int64{1, 144, 40, 40}, []int64{1, 144, 20, 20}),
			LayoutYOLOv8, 80, 0,
			"output0 [1 84 8400]: 8400 anchors at strides 8, 16, 32 of 640x640; 80 classes",
		},
		{
			"yolov5",
			Options{},
			described(80, []int64{1, 25200, 85}), LayoutYOLOv5, 80, 0,
			"output0 [1 25200 85]: 25200 anchors at strides 8, 16, 32 of 640x640, 3 a cell; 80 classes",
		},
		{
			"yolov5 with four strides",
			Options{},
			described(80, []int64{1, 25500, 85}), LayoutYOLOv5, 80, 0,
			"output0 [1 25500 85]: 25500 anchors at strides 8, 16, 32, 64 of 640x640, 3 a cell; 80 classes",
		},
		{
			"yolov5 of one class",
			Options{},
			described(1, []int64{1, 25200, 6}), LayoutYOLOv5, 1, 0,
			"output0 [1 25200 6]: 25200 anchors at strides 8, 16, 32 of 640x640, 3 a cell; 1 class",
		},
		{
			"yolov5 with its raw maps",
			Options{},
			described(80, []int64{1, 3, 80, 80, 85}, []int64{1, 255, 40, 40}, []int64{1, 25200, 85}), LayoutYOLOv5, 80, 2,
			"output2 [1 25200 85]: 25200 anchors at strides 8, 16, 32 of 640x640, 3 a cell; 80 classes",
		},
		{
			"end2end",
			Options{},
			described(80, []int64{1, 300, 6}), LayoutEnd2End, 80, 0,
			"output0 [1 300 6]: a short list of rows of 6 numbers, which neither an objectness nor the scores of 80 classes leave room for",
		},
		{
			"end2end of one class",
			Options{},
			described(1, []int64{1, 300, 6}), LayoutEnd2End, 1, 0,
			"output0 [1 300 6]: a short list of rows of 6 numbers, which neither an objectness nor the scores of 1 class leave room for",
		},
		{
			"end2end of two classes by its file",
			Options{},
			endToEndModel(2, []int64{-1, -1, 6}), LayoutEnd2End, 2, 0,
			"output0 [-1 -1 6]: the file specifies that its boxes are suppressed already",
		},
		{
			"classes by task",
			Options{},
			sized(224, 224, engine.Classify, 10, []int64{1, 10}), LayoutClassify, 10, 0,
			"output0 [1 10]: the file specifies classification",
		},
		{
			"classes open",
			Options{},
			sized(224, 224, engine.Classify, 0, []int64{-1, -1}), LayoutClassify, 0, 0,
			"output0 [-1 -1]: the file specifies classification",
		},
		{
			"classes by labels",
			Options{},
			sized(224, 224, "", 1000, []int64{-1, 1000}), LayoutClassify, 1000, 0,
			"output0 [-1 1000]: scores of 1000 classes",
		},
		{
			"named",
			Options{Layout: LayoutYOLOv5},
			described(0, []int64{1, 100, 100}), LayoutYOLOv5, 95, 0,
			"output0 [1 100 100]: the layout was selected",
		},
		{
			"named against the task",
			Options{Layout: LayoutYOLOv8},
			sized(640, 640, "segment", 0, []int64{1, 3}, []int64{1, 116, 8400}),
			LayoutYOLOv8, 112, 1, "output1 [1 116 8400]: the layout was selected",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := openDecoder(t, c.m, c.o).Recognised()
			assert.Equal(t, c.layout, r.Layout)
			assert.Equal(t, c.classes, r.Classes)
			assert.Equal(t, []int{c.output}, r.Outputs)
			assert.Equal(t, c.evidence, r.Evidence)
			assert.Equal(t, string(c.layout)+": "+c.evidence, r.String())
		})
	}
}

// TestOpenRefuses is as long as its table of outputs that are none of a detector.
func TestOpenRefuses(t *testing.T) {
	const none = " match no supported layout (edge-infer model layouts lists them)"
	strided := described(80, []int64{1, 84, 8400})
	strided.Metadata.Stride = 64
	half := described(80, []int64{1, 84, 100}, []int64{1})
	half.Outputs[0].Type, half.Outputs[1].Type = engine.Float16, engine.Int32
	integers := described(80, []int64{1, 84, 8400})
	integers.Outputs[0].Type = engine.Int64
	sentence := &engine.Model{
		Inputs: []engine.TensorInfo{
			{Name: "ids", Type: engine.Int64, Shape: []int64{1, 128}}, {Name: "mask", Type: engine.Int64, Shape: []int64{1, 128}},
		},
		Outputs: []engine.TensorInfo{{Name: "logits", Shape: []int64{1, 2}}},
	}
	_, sentence.NoImage = engine.FindImageInput(sentence.Inputs, engine.Metadata{})
	for _, c := range []struct {
		o    Options
		m    *engine.Model
		want string
	}{
		{Options{}, described(0), "the model has no output"},
		{Options{}, sentence, "the model takes no images: it has 2 inputs, images go to a single one (infer --input runs it on arrays)"},
		{Options{}, described(80, []int64{1, 3, 80, 80, 85}), "output0 [1 3 80 80 85]" + none},
		{Options{}, described(0, []int64{}), "output0 []" + none},
		{Options{}, sized(640, 640, engine.Detect, 0, []int64{1, 1000}), "output0 [1 1000]" + none},
		{Options{}, described(7, []int64{1, 90, 100}), "output0 [1 90 100]" + none},
		{Options{}, half, "output0 float16 [1 84 100], output1 int32 [1]" + none},
		{Options{}, integers, "output0 int64 [1 84 8400]" + none},
		{
			Options{},
			described(0, []int64{1, 84, 8400}),
			"output0 [1 84 8400] looks like yolov8, but no class names in the file: is this a detection, pose or mask model? (detection: name its 80 classes with --labels FILE or coco)",
		},
		{
			Options{},
			described(0, []int64{1, 25200, 6}),
			"output0 [1 25200 6] looks like yolov5, but no class names in the file: is this a detection, pose or mask model? " +
				"(detection: name its 1 class with --labels FILE)",
		},
		{
			Options{},
			described(6, []int64{1, 84, 8400}),
			"output0 [1 84 8400] looks like yolov8, but it has 80 classes and the model has 6 labels (give the labels that belong to it " +
				"with --labels FILE)",
		},
		{
			Options{},
			described(6, []int64{1, 25200, 85}),
			"output0 [1 25200 85] looks like yolov5, but it has 80 classes and the model has 6 labels (give the labels that belong to it " +
				"with --labels FILE)",
		},
		{
			Options{},
			sized(128, 160, "", 1, []int64{1, 300, 6}),
			"output0 [1 300 6] looks like yolov5, but it could also be end2end (select one with --layout)",
		},
		{
			Options{},
			strided,
			"output0 [1 84 8400]" + none,
		},
		{
			Options{},
			described(80, []int64{1, 84, 8400}, []int64{1, 32, 160, 160}),
			"output0 [1 84 8400] looks like yolov8, but there is a further output, output1 [1 32 160 160] (--layout yolov8 " +
				"accepts it anyway)",
		},
		{
			Options{},
			described(0, []int64{1, 300, 6}),
			"output0 [1 300 6] looks like end2end, but boxes with the scores of 2 classes would look the same (confirm it with --layout end2end)",
		},
		{
			Options{},
			sized(640, 640, engine.Detect, 2, []int64{1, 300, 6}),
			"output0 [1 300 6] looks like end2end, but boxes with the scores of 2 classes would look the same (confirm it with --layout end2end)",
		},
		{
			Options{},
			described(1, []int64{1, -1, 6}),
			"output0 [1 -1 6] looks like end2end, but it could also be yolov5 with 1 class (select one with --layout)",
		},
		{
			Options{},
			described(80, []int64{1, 300, 6}, []int64{1, 32, 160, 160}),
			"output0 [1 300 6] looks like end2end, but there are further outputs (confirm it with --layout end2end)",
		},
		{
			Options{},
			sized(224, 224, "", 0, []int64{1, 1000}),
			"output0 [1 1000] looks like classify, but no class names in the file: are its numbers classes? (name them " +
				"with --labels FILE)",
		},
		{
			Options{},
			sized(224, 224, engine.Classify, 10, []int64{1, 1000}),
			"output0 [1 1000] looks like classify, but it has 1000 classes and the model has 10 labels (give the labels that belong to " +
				"it with --labels FILE)",
		},
		{
			Options{},
			sized(640, 640, "depth", 80, []int64{1, 116, 8400}),
			"output0 [1 116 8400]" + none,
		},
		{
			Options{},
			sized(640, 640, engine.Raw, 80, []int64{1, 84, 8400}),
			`task "raw" is not decoded (detect or pose or segment or obb or classify or read or embed or semantic or depth)`,
		},
		{
			Options{},
			sized(224, 224, engine.Classify, 0, []int64{1, 84, 8400}),
			"output0 [1 84 8400]" + none,
		},
		{
			Options{Layout: LayoutYOLOv5},
			described(0, []int64{1, 84, 5}),
			"output0 [1 84 5] are not what layout yolov5 needs, [B,N,5+nc] (edge-infer model layouts lists them)",
		},
		{
			Options{Layout: LayoutYOLOv8},
			described(0, []int64{1, 4, 84}),
			"output0 [1 4 84] are not what layout yolov8 needs, [B,4+nc,N] (edge-infer model layouts lists them)",
		},
		{
			Options{Layout: LayoutEnd2End},
			described(0, []int64{1, 300, 38}),
			"output0 [1 300 38] are not what layout end2end needs, [B,N,6] (edge-infer model layouts lists them)",
		},
		{
			Options{Layout: LayoutClassify},
			described(0, []int64{1, 84, 8400}),
			"output0 [1 84 8400] are not what layout classify needs, [B,nc] (edge-infer model layouts lists them)",
		},
		{
			Options{Layout: LayoutYOLOv8},
			described(6, []int64{1, 84, 8400}),
			"output0 [1 84 8400] read as yolov8 has 80 classes but the model has 6 labels (give the labels that belong to it " +
				"with --labels)",
		},
		{
			Options{Layout: "retinanet"},
			described(6, []int64{1, 84, 8400}),
			`layout "retinanet" is not known (edge-infer model layouts lists them)`,
		},
		{Options{}, described(0, []int64{1, 0, 6}), "output0 [1 0 6] has a size that cannot be decoded"},
		{Options{}, described(0, []int64{1, -2, 6}), "output0 [1 -2 6] has a size that cannot be decoded"},
		{Options{}, described(0, []int64{1, 6, 1 << 40}), "output0 [1 6 1099511627776] has a size that cannot be decoded"},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := NewDecoder(c.m, c.o)
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, ErrLayout)
		})
	}
}

func TestOpenErrors(t *testing.T) {
	list, map80 := []int64{1, 300, 6}, []int64{1, 84, 8400}
	for _, c := range []struct {
		o    Options
		m    *engine.Model
		want string
	}{
		{Options{MinScore: 1}, described(80, list), "open decoder: threshold 1 is not between 0 and 1"},
		{Options{IoU: -1}, described(80, list), "open decoder: iou -1 is not between 0 and 1"},
		{Options{MaxCandidates: -1}, described(80, list), "open decoder: max candidates -1 is not between 1 and 1048576"},
		{Options{MaxCandidates: 10, Limit: 11}, described(80, list), "open decoder: limit 11 is not between 1 and max candidates 10"},
		{Options{TopK: -1}, described(80, list), "open decoder: top-k -1 is less than 1"},
		{Options{Classes: []int{80}}, described(80, map80), "open decoder: class 80 is not one of the model's 80"},
		{
			Options{ClassMinScores: map[int]float32{-1: 0.5}},
			described(80, map80),
			"open decoder: class -1 of the class thresholds is not one of the model's 80",
		},
		{Options{ClassMinScores: map[int]float32{1: 2}}, described(80, map80), "open decoder: threshold 2 of class 1 is not between 0 and 1"},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := NewDecoder(c.m, c.o)
			assert.EqualError(t, err, c.want)
		})
	}
}

// What an engine may list on its device follows from what was recognised.
func TestFilter(t *testing.T) {
	columns := engine.BoxMap{
		Boxes: engine.Numbers{Step: 1, Next: 8400}, Scores: engine.Numbers{Offset: 4 * 8400, Step: 1, Next: 8400},
		Count: 8400, Classes: 80, ScaleX: 1, ScaleY: 1,
	}
	rows := engine.BoxMap{
		Boxes: engine.Numbers{Output: 1, Step: 85, Next: 1}, Scores: engine.Numbers{Output: 1, Offset: 5, Step: 85, Next: 1},
		Count: 25200, Classes: 80, Objectness: true, ScaleX: 1, ScaleY: 1,
	}
	classes := sized(224, 224, engine.Classify, 10, []int64{1, 10})
	for _, c := range []struct {
		name string
		o    Options
		m    *engine.Model
		want *engine.Filter
	}{
		{"yolov8", Options{}, described(80, []int64{-1, 84, 8400}), &engine.Filter{BoxMap: columns, Threshold: 0.25}},
		{
			"threshold",
			Options{MinScore: 0.1, Classes: []int{3}},
			described(80, []int64{-1, 84, 8400}),
			&engine.Filter{BoxMap: columns, Threshold: 0.1},
		},
		{
			"lowest threshold",
			Options{ClassMinScores: map[int]float32{2: 0.01, 3: 0.9}},
			described(80, []int64{-1, 84, 8400}),
			&engine.Filter{BoxMap: columns, Threshold: 0.01},
		},
		{"yolov5", Options{}, described(80, []int64{1, 3, 80, 80, 85}, []int64{1, 25200, 85}), &engine.Filter{BoxMap: rows, Threshold: 0.25}},
		{"several classes a box", Options{MultiLabel: true}, described(80, []int64{-1, 84, 8400}), nil},
		{"open sizes", Options{}, sized(640, 640, engine.Detect, 80, []int64{-1, 84, -1}), nil},
		{"end2end", Options{}, described(80, []int64{1, 300, 6}), nil},
		{"classify", Options{}, classes, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := openDecoder(t, c.m, c.o).Filter()
			require.Equal(t, c.want, got)
			if got == nil {
				return
			}
			require.NoError(t, got.Check(c.m.Outputs))
			c.m.Filter = got
			openDecoder(t, c.m, c.o) // the engine lists what the decoder wants
			c.m.Filter = &engine.Filter{BoxMap: got.BoxMap, Threshold: 0.95}
			_, err := NewDecoder(c.m, c.o)
			require.EqualError(t, err,
				fmt.Sprintf("open decoder: the engine was opened to list boxes from a score of 0.95, not %.3g (open it again)", got.Threshold))
			c.m.Filter = &engine.Filter{BoxMap: got.BoxMap, Threshold: 0.001}
			c.m.Filter.Count--
			_, err = NewDecoder(c.m, c.o)
			require.EqualError(t, err,
				"open decoder: the engine was opened to list boxes on its device that are now read differently (open it again)")
		})
	}
}

// Every refusal is a reason and one way on, in 200 characters: for all layouts, forms, labels and tasks, whatever the outputs are called.
func TestRefusalsAreShort(t *testing.T) {
	long := strings.Repeat("StatefulPartitionedCall/", 4)
	seen := map[string]bool{}
	check := func(m *engine.Model, layout Layout) {
		_, err := Recognise(m, layout)
		if err == nil {
			return
		}
		text := err.Error()
		assert.LessOrEqual(t, len(text), maxRefusal, text)
		assert.LessOrEqual(t, strings.Count(text, "--layout")+strings.Count(text, "--labels")+strings.Count(text, "model layouts"), 1, text)
		seen[text] = true
	}
	shapes := [][]int64{
		{1, 84, 8400},
		{1, 8400, 84},
		{1, 8400, 85},
		{1, 25200, 85},
		{1, 8400, 6},
		{1, 25200, 6},
		{1, 300, 6},
		{1, 300, 84},
		{1, 300, 38},
		{1, 1000},
		{-1, 7},
		{-1, 6},
		{1, 8400, 4},
		{1, 4, 8400},
		{1, 80, 8400},
		{1, 17, 160, 160},
		{1, 1, 640, 640},
		{1, 640, 640},
		{1, 255, 80, 80},
		{1, 255, 40, 40},
		{1, 3, 80, 80, 85},
		{1, 144, 80, 80},
		{1, 100, 92},
		{1, 100, 4},
		{1, 100},
		{1, 1},
		{},
		{1, 0},
		{-1, -1, -1},
		{1, 32, 160, 160},
		{1, 40, 37},
		{1, 8598, 112},
	}
	for _, labels := range []int{0, 1, 2, 3, 17, 80, 91, 1000} {
		for _, task := range []engine.Task{"", engine.Detect, engine.Segment, engine.Pose, engine.Raw} {
			for _, first := range shapes {
				for _, others := range [][][]int64{{}, {first}, {{1, 8400, 4}}, {{1, 300, 4}, {1, 300}}, {{1, 32, 160, 160}}, {
					{1, 100, 4}, {1, 100}, {1, 100}, {1, 1}, {1, 1}, {1, 2}, {1, 3},
				}} {
					m := sized(640, 640, task, labels, append([][]int64{first}, others...)...)
					check(m, LayoutAuto)
					for i := range m.Outputs {
						m.Outputs[i].Name = long + m.Outputs[i].Name
					}
					check(m, LayoutAuto)
					for _, layout := range Layouts() {
						check(m, Layout(layout))
					}
				}
			}
		}
	}
	assert.Greater(t, len(seen), 500)
	for _, c := range heads() {
		_, err := ParseLayout(string(c.describe().Layout) + "x")
		require.ErrorContains(t, err, "did you mean "+string(c.describe().Layout))
		assert.LessOrEqual(t, len(err.Error()), maxRefusal)
	}
}
