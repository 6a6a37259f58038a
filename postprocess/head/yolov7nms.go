package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutYOLOv7NMS is [K,7] of a single image: a row for each box with the image's index, the corners x1, y1, x2, y2 in input pixels, the
// class and the score. The network has suppressed overlapping boxes. Source: YOLOv7's export.py with --end2end and without --max-wh.
const LayoutYOLOv7NMS Layout = "yolov7-nms"

type yolov7NMS struct {
	scoredLabels
	noBoxMap
}

// yolov7Row is the number of columns.
const yolov7Row = 7

func (yolov7NMS) describe() Description {
	return Description{
		Layout: LayoutYOLOv7NMS, Task: engine.Detect, Form: "[K,7]", Networks: "YOLOv7 exported with its suppression for ONNX Runtime",
		Gives: boxesWithClasses, NMSFree: true, Unbatched: true,
	}
}

func (yolov7NMS) findOutputs(n *network) [][]int { return n.floats() }

func (h yolov7NMS) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 2 || shape[1] != yolov7Row {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[0]}, nil
}

// recognise expects YOLOv7's name of the output and an open number of rows: a classifier of seven classes looks the same otherwise.
func (yolov7NMS) recognise(n *network, m *match) (evidence, doubt string) {
	switch {
	case m.boxes >= 0 || len(n.outputs) > 1 || !hasName(n.outputs[m.outputs[0]].Name, "output"):
		return "", ""
	case n.labels == yolov7Row:
		return "", "the scores of 7 classes would look the same (confirm it with --layout yolov7-nms)"
	case n.labels == 0 && n.metadata.Task != engine.Detect:
		return "", "no class names in the file: are its rows boxes? (name the classes with --labels FILE)"
	}
	return "rows of an image's index, corners, class and score, as many as there are objects", ""
}

func (yolov7NMS) newDecoder(s *settings) decoder { return &yolov7NMSDecoder{newBoxes(s)} }

type yolov7NMSDecoder struct{ boxes }

func (d *yolov7NMSDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	rows := in.tensors[0].data
	count := len(rows) / yolov7Row
	d.beginList(count)
	for i := range count {
		r := rows[yolov7Row*i:][:yolov7Row]
		row := [engine.CandidateFields]float32{r[1], r[2], r[3], r[4], r[6], r[5]}
		d.take(in, &row, int32(i))
	}
	return d.finish(in, dst), nil
}
