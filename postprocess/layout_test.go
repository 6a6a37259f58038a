package postprocess

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecognize(t *testing.T) {
	for _, c := range []struct {
		name    string
		d       Decoder
		shapes  [][]int64
		layout  Layout
		classes int
		output  int
	}{
		{"yolov8 by size", Decoder{Width: 640, Height: 640}, [][]int64{{1, 84, 8400}}, LayoutYOLOv8, 80, 0},
		{"yolov8 by labels", Decoder{Labels: 80}, [][]int64{{1, 84, 8400}}, LayoutYOLOv8, 80, 0},
		{"yolov8 all open", Decoder{}, [][]int64{{-1, 84, -1}}, LayoutYOLOv8, 80, 0},
		{"yolov8 wide input", Decoder{Width: 640, Height: 384}, [][]int64{{4, 10, 5040}}, LayoutYOLOv8, 6, 0},
		{"yolov8 of one class", Decoder{Labels: 1}, [][]int64{{1, 5, 8400}}, LayoutYOLOv8, 1, 0},
		{"yolov5 by size", Decoder{Width: 640, Height: 640}, [][]int64{{1, 25200, 85}}, LayoutYOLOv5, 80, 0},
		{"yolov5 by labels, four strides", Decoder{Labels: 80}, [][]int64{{1, 25500, 85}}, LayoutYOLOv5, 80, 0},
		{"yolov5 of one class", Decoder{Labels: 1, Width: 640, Height: 640}, [][]int64{{1, 25200, 6}}, LayoutYOLOv5, 1, 0},
		{"yolov5 with its raw maps", Decoder{Labels: 80}, [][]int64{{1, 3, 80, 80, 85}, {1, 3, 40, 40, 85}, {1, 25200, 85}}, LayoutYOLOv5, 80, 2},
		{"end2end", Decoder{Labels: 80, Width: 640, Height: 640}, [][]int64{{1, 300, 6}}, LayoutEnd2End, 80, 0},
		{"end2end without metadata", Decoder{}, [][]int64{{-1, 300, 6}}, LayoutEnd2End, 0, 0},
		{"end2end of one class", Decoder{Labels: 1, Width: 640, Height: 640}, [][]int64{{1, 300, 6}}, LayoutEnd2End, 1, 0},
		{"classes", Decoder{}, [][]int64{{-1, 1000}}, LayoutClassify, 1000, 0},
		{"classes by task", Decoder{Task: "classify", Labels: 10}, [][]int64{{1, 10}}, LayoutClassify, 10, 0},
		{"classes open", Decoder{Task: "classify"}, [][]int64{{-1, -1}}, LayoutClassify, 0, 0},
		{"override", Decoder{Layout: LayoutYOLOv5}, [][]int64{{1, 100, 100}}, LayoutYOLOv5, 95, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.d
			require.NoError(t, d.Open(c.shapes...))
			assert.Equal(t, c.layout, d.Recognized())
			assert.Equal(t, c.classes, d.head.classes)
			assert.Equal(t, c.output, d.Output())
		})
	}
}

func TestOpenErrors(t *testing.T) {
	const supported = "supported are yolov5 [B,N,5+nc], yolov8 [B,4+nc,N], end2end [B,N,6] and classify [B,nc]"
	for _, c := range []struct {
		d      Decoder
		shapes [][]int64
		want   string
	}{
		{Decoder{}, nil, "open decoder: unsupported output layout: the model has no output"},
		{Decoder{}, [][]int64{{1, 3, 80, 80, 85}}, "open decoder: unsupported output layout: output [1 3 80 80 85] has no known layout; " + supported},
		{Decoder{}, [][]int64{{}}, "open decoder: unsupported output layout: output [] has no known layout; " + supported},
		{Decoder{Task: "detect"}, [][]int64{{1, 1000}}, "open decoder: unsupported output layout: output [1 1000] has no known layout; " + supported},
		{Decoder{Labels: 7}, [][]int64{{1, 90, 100}}, "open decoder: unsupported output layout: output [1 90 100] has no known layout for 7 labels; " + supported},
		{
			Decoder{},
			[][]int64{{1, 84, 8400}},
			"open decoder: unsupported output layout: output [1 84 8400] could be yolov5 with 8395 classes or yolov8 with 80: " +
				"name the layout yolov5 or yolov8, or give the model's labels",
		},
		{
			Decoder{Width: 640, Height: 640, Labels: 6},
			[][]int64{{1, 84, 8400}},
			"open decoder: unsupported output layout: output [1 84 8400] read as yolov8 has 80 classes but the model names 6 labels: " +
				"give the labels that belong to the model, or another layout",
		},
		{
			Decoder{Width: 640, Height: 640, Labels: 6},
			[][]int64{{1, 25200, 85}},
			"open decoder: unsupported output layout: output [1 25200 85] read as yolov5 has 80 classes but the model names 6 labels: " +
				"give the labels that belong to the model, or another layout",
		},
		{Decoder{Labels: 1}, [][]int64{{1, -1, 6}}, "open decoder: unsupported output layout: output [1 -1 6] could be end2end, or yolov5 with 1 class: name the layout end2end or yolov5"},
		{Decoder{Task: "segment"}, [][]int64{{1, 116, 8400}}, `open decoder: unsupported output layout: task "segment" is not decoded (detect or classify)`},
		{Decoder{Task: "classify"}, [][]int64{{1, 84, 8400}}, "open decoder: unsupported output layout: output [1 84 8400] is not classify, which needs [B,nc]"},
		{Decoder{Layout: LayoutYOLOv5}, [][]int64{{1, 84, 5}}, "open decoder: unsupported output layout: output [1 84 5] is not yolov5, which needs [B,N,5+nc]"},
		{Decoder{Layout: LayoutYOLOv8}, [][]int64{{1, 4, 84}}, "open decoder: unsupported output layout: output [1 4 84] is not yolov8, which needs [B,4+nc,N]"},
		{Decoder{Layout: LayoutEnd2End}, [][]int64{{1, 300, 38}}, "open decoder: unsupported output layout: output [1 300 38] is not end2end, which needs [B,N,6]"},
		{Decoder{}, [][]int64{{1, 0, 6}}, "open decoder: unsupported output layout: output [1 0 6] has a size that cannot be decoded"},
		{Decoder{Confidence: 1}, [][]int64{{1, 300, 6}}, "open decoder: confidence 1 is not between 0 and 1"},
		{Decoder{IoU: -1}, [][]int64{{1, 300, 6}}, "open decoder: iou -1 is not between 0 and 1"},
		{Decoder{MaxCandidates: -1}, [][]int64{{1, 300, 6}}, "open decoder: max candidates -1 is not between 1 and 1048576"},
		{Decoder{MaxCandidates: 10, MaxDetections: 11}, [][]int64{{1, 300, 6}}, "open decoder: max detections 11 is not between 1 and max candidates 10"},
		{Decoder{TopK: -1}, [][]int64{{1, 300, 6}}, "open decoder: top-k -1 is less than 1"},
		{Decoder{Labels: -1}, [][]int64{{1, 300, 6}}, "open decoder: labels, width and height cannot be negative"},
		{Decoder{Labels: 80, Classes: []int{80}}, [][]int64{{1, 84, 8400}}, "open decoder: class 80 is not one of the model's 80"},
		{Decoder{Labels: 80, ClassConfidence: map[int]float32{-1: 0.5}}, [][]int64{{1, 84, 8400}}, "open decoder: class -1 of the class thresholds is not one of the model's 80"},
		{Decoder{Labels: 80, ClassConfidence: map[int]float32{1: 2}}, [][]int64{{1, 84, 8400}}, "open decoder: confidence 2 of class 1 is not between 0 and 1"},
	} {
		t.Run(c.want, func(t *testing.T) {
			d := c.d
			assert.EqualError(t, d.Open(c.shapes...), c.want)
		})
	}
	assert.ErrorIs(t, (&Decoder{}).Open([]int64{1}), ErrLayout)
}

func TestParseLayout(t *testing.T) {
	for name, want := range map[string]Layout{"": LayoutAuto, "auto": LayoutAuto, "YOLOv5": LayoutYOLOv5, "yolov8": LayoutYOLOv8, "end2end": LayoutEnd2End, "classify": LayoutClassify} {
		got, err := ParseLayout(name)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := ParseLayout("ssd")
	assert.EqualError(t, err, `layout "ssd" is not known (auto, yolov5, yolov8, end2end or classify)`)
}
