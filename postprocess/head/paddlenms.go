package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutPaddleNMS is [K,6] of a single image with the number of its rows, [1]: class, score and the corners x1, y1, x2, y2, in input pixels
// because the further inputs im_shape and scale_factor specify that the image was not scaled. The network has suppressed overlapping
// boxes; a row of class -1 is unused. Source: PaddleDetection's export with its post-processing.
const LayoutPaddleNMS Layout = "paddle-nms"

type paddleNMS struct {
	scoredLabels
	noBoxMap
}

func (paddleNMS) describe() Description {
	return Description{
		Layout: LayoutPaddleNMS, Task: engine.Detect, Form: "[K,6] and, as an integer, [1]", Networks: "PaddleDetection with its post-processing",
		Gives: boxesWithClasses, NMSFree: true, Unbatched: true,
		Unspecified: "how the images of " + string(LayoutPaddleNMS) +
			" are scaled: imagenet for PicoDet and PP-YOLOE, rtdetr for PP-YOLOE+ and RT-DETR",
	}
}

// findOutputs uses shapes and types, because exports name their outputs by number.
func (paddleNMS) findOutputs(n *network) [][]int {
	rows := slices.IndexFunc(n.outputs, func(o engine.TensorInfo) bool {
		return len(o.Shape) == 2 && o.Shape[1] == engine.CandidateFields && (o.Type == engine.Float32 || o.Type == engine.Float16)
	})
	count := slices.IndexFunc(n.outputs, func(o engine.TensorInfo) bool {
		return len(o.Shape) == 1 && (o.Type == engine.Int32 || o.Type == engine.Int64)
	})
	if rows < 0 || count < 0 {
		return nil
	}
	return [][]int{{rows, count}}
}

func (h paddleNMS) measure(shapes [][]int64) (sizes, error) {
	rows, count := shapes[0], shapes[1]
	if len(rows) != 2 || rows[1] != engine.CandidateFields || len(count) != 1 || count[0] > 1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: rows[0]}, nil
}

func (paddleNMS) recognise(n *network, m *match) (evidence, doubt string) {
	if len(n.outputs) > 2 {
		return "", "there are further outputs (--layout paddle-nms reads the boxes anyway)"
	}
	return "rows of class, score and corners, and their number", ""
}

func (paddleNMS) newDecoder(s *settings) decoder { return &paddleNMSDecoder{newBoxes(s)} }

type paddleNMSDecoder struct{ boxes }

func (d *paddleNMSDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	rows, numbers := in.tensors[0].data, in.tensors[1].data
	count := len(rows) / engine.CandidateFields
	if len(numbers) != 1 || !(numbers[0] >= 0) {
		return dst, in.mismatch()
	}
	if numbers[0] < float32(count) {
		count = int(numbers[0])
	}
	d.beginList(count)
	for i := range count {
		r := rows[engine.CandidateFields*i:][:engine.CandidateFields]
		if r[0] == -1 {
			continue
		}
		row := [engine.CandidateFields]float32{r[2], r[3], r[4], r[5], r[1], r[0]}
		d.take(in, &row, int32(i))
	}
	return d.finish(in, dst), nil
}
