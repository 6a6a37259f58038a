package head

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutYOLOv5Maps is [B,3*(5+nc),h,w] for each of the strides 8, 16 and 32, interleaved as [B,h,w,3*(5+nc)], or [B,3,h,w,5+nc]: for each
// of three anchors of a cell the centre's x and y, width and height relative to the anchor, an objectness, and a score for each class that
// is multiplied by it, all before or all after their sigmoid; the values decide. The anchors are not in the outputs: those here are of the
// published YOLOv5 and YOLOv7-tiny. LayoutYOLOv7Maps has those of YOLOv7. Source: the post-processing of rknn_model_zoo.
const (
	LayoutYOLOv5Maps Layout = "yolov5-maps"
	LayoutYOLOv7Maps Layout = "yolov7-maps"
)

// anchorsPerCell is the number of anchors of a cell.
const anchorsPerCell = 3

// anchorSizes are widths and heights in pixels by scale.
type anchorSizes [3][anchorsPerCell][2]float32

type yolov5Maps struct {
	scoredLabels
	noBoxMap
	seven       bool // LayoutYOLOv7Maps
	interleaved bool // of this network
}

func (h yolov5Maps) describe() Description {
	d := Description{
		Layout: LayoutYOLOv5Maps, Task: engine.Detect, Form: "[B,3*(5+nc),h,w] or [B,3,h,w,5+nc] for each of three scales",
		Networks: "YOLOv5 and YOLOv7-tiny before decoding, as exported for RKNN and Hailo", Gives: boxesWithClasses,
	}
	if h.seven {
		d.Layout = LayoutYOLOv7Maps
		d.Networks = "YOLOv7 before decoding: exported without --grid, or for RKNN and Hailo"
	}
	return d
}

func (h yolov5Maps) anchors() anchorSizes {
	if h.seven {
		return anchorSizes{
			{{12, 16}, {19, 36}, {40, 28}}, {{36, 75}, {76, 55}, {72, 146}}, {{142, 110}, {192, 243}, {459, 401}},
		}
	}
	return anchorSizes{
		{{10, 13}, {16, 30}, {33, 23}}, {{30, 61}, {62, 45}, {59, 119}}, {{116, 90}, {156, 198}, {373, 326}},
	}
}

func (h yolov5Maps) configure(n *network) head {
	h.interleaved = onlyMaps(n.scaleMaps(true)) != nil
	return h
}

// findOutputs lists the maps from the finest scale on.
func (h yolov5Maps) findOutputs(n *network) [][]int {
	if all := onlyMaps(n.scaleMaps(h.interleaved)); len(all) == 3 {
		return [][]int{all}
	}
	if len(n.outputs) != 3 {
		return nil
	}
	for i, stride := range []int64{8, 16, 32} {
		s := n.outputs[i].Shape
		if len(s) != 5 || s[1] != anchorsPerCell || s[2] != int64(n.height)/stride || s[3] != int64(n.width)/stride {
			return nil
		}
	}
	return [][]int{{0, 1, 2}}
}

// anchorLevel is the layout of a scale: Step is the distance to the next cell, Next to the next number of a box.
type anchorLevel struct {
	engine.Numbers
	anchor        int64 // leads to the next anchor
	width, height int   // in cells
	numbers       int   // of a box
}

// level measures the map of a scale.
func (h yolov5Maps) level(shape []int64) (l anchorLevel, ok bool) {
	if len(shape) == 5 {
		m, ok := newScaleMap(0, []int64{shape[0], shape[2], shape[3], shape[4]}, true)
		l = anchorLevel{
			Numbers: engine.Numbers{Step: shape[4], Next: 1}, anchor: int64(m.cells()) * shape[4], width: m.width, height: m.height,
			numbers: m.channels,
		}
		return l, ok && shape[1] == anchorsPerCell && l.numbers > 5
	}
	m, ok := newScaleMap(0, shape, h.interleaved)
	l = anchorLevel{Numbers: m.numbers(0), width: m.width, height: m.height, numbers: m.channels / anchorsPerCell}
	l.anchor = int64(l.numbers) * l.Next
	return l, ok && m.channels%anchorsPerCell == 0 && l.numbers > 5
}

func (h yolov5Maps) measure(shapes [][]int64) (s sizes, err error) {
	for i, shape := range shapes {
		l, ok := h.level(shape)
		if !ok || i > 0 && l.numbers != 5+s.classes {
			return sizes{}, mismatch(h, shapes)
		}
		s.boxes += int64(anchorsPerCell * l.width * l.height)
		s.classes = l.numbers - 5
	}
	return s, nil
}

// recognise never is certain: YOLOv5 and YOLOv7 differ in their anchors only.
func (h yolov5Maps) recognise(n *network, m *match) (evidence, doubt string) {
	if h.seven || n.labels > 0 && n.labels != m.classes {
		return "", ""
	}
	return "", "its anchors are not in the file (select --layout yolov5-maps, or yolov7-maps for those of YOLOv7)"
}

func (h yolov5Maps) newDecoder(s *settings) decoder {
	return &yolov5MapsDecoder{boxes: newBoxes(s), head: h, sizes: h.anchors()}
}

type yolov5MapsDecoder struct {
	boxes
	head  yolov5Maps
	sizes anchorSizes

	// Of an image.
	logits bool    // its numbers are before their sigmoid
	least  float32 // objectness of a wanted box, as its numbers are
}

func (d *yolov5MapsDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	// Of the coarsest scale: nearly all logits are below 0.
	d.logits = slices.ContainsFunc(in.tensors[len(in.tensors)-1].data, func(v float32) bool { return v < scan.MinScore })
	d.least = d.leastMinScore()
	if d.logits {
		d.least = float32(math.Log(float64(d.least) / (1 - float64(d.least))))
	}
	count := int(in.match.boxes)
	if d.MultiLabel {
		count = 2 * d.MaxCandidates
	}
	d.beginList(count)
	first := 0
	for scale := range in.shapes {
		l, _ := d.head.level(in.shapes[scale])
		for anchor := range anchorsPerCell {
			d.addAnchor(in, &l, scale, anchor, first)
			first += l.width * l.height
		}
	}
	if in.scoresOnly {
		return dst, nil
	}
	return d.finish(in, dst), nil
}

// addAnchor adds the candidates of an anchor, whose boxes are numbered from first on.
func (d *yolov5MapsDecoder) addAnchor(in *input, l *anchorLevel, scale, anchor, first int) {
	data := in.tensors[scale].data[int64(anchor)*l.anchor:]
	for cell := range l.width * l.height {
		box := data[int64(cell)*l.Step:]
		objectness := box[4*l.Next]
		if in.scoresOnly {
			d.countBad(in, box, l)
			continue
		}
		if objectness < d.least {
			continue
		}
		objectness = d.score(objectness)
		d.addBox(in, box, l, objectness, d.corners(box, l, scale, anchor, cell), int32(first+cell))
	}
}

// addBox adds a box for its best class, or for all classes above their minimum scores.
func (d *yolov5MapsDecoder) addBox(in *input, box []float32, l *anchorLevel, objectness float32, at postprocess.Box, index int32) {
	row := [engine.CandidateFields]float32{at.X1, at.Y1, at.X2, at.Y2}
	best := 0
	for class := range l.numbers - 5 {
		score := box[int64(5+class)*l.Next]
		if !d.MultiLabel {
			if score > box[int64(5+best)*l.Next] {
				best = class
			}
			continue
		}
		row[4], row[5] = objectness*d.score(score), float32(class)
		if len(d.candidates) == cap(d.candidates) {
			d.candidates = d.best(d.candidates)
		}
		d.take(in, &row, index)
	}
	if !d.MultiLabel {
		row[4], row[5] = objectness*d.score(box[int64(5+best)*l.Next]), float32(best)
		d.take(in, &row, index)
	}
}

// score returns a number after its sigmoid.
func (d *yolov5MapsDecoder) score(v float32) float32 {
	if d.logits {
		return 1 / (1 + exp(-v))
	}
	return v
}

// countBad counts the scores of a box that cannot be scores.
func (d *yolov5MapsDecoder) countBad(in *input, box []float32, l *anchorLevel) {
	for i := 4; i < l.numbers; i++ {
		if v := d.score(box[int64(i)*l.Next]); !(v >= scan.MinScore && v <= scan.MaxScore) {
			in.stats.BadScores++
		}
	}
}

// corners returns a box in input pixels.
func (d *yolov5MapsDecoder) corners(box []float32, l *anchorLevel, scale, anchor, cell int) postprocess.Box {
	strideX, strideY := float32(d.match.width/l.width), float32(d.match.height/l.height)
	x := (2*d.score(box[0]) - 0.5 + float32(cell%l.width)) * strideX
	y := (2*d.score(box[l.Next]) - 0.5 + float32(cell/l.width)) * strideY
	width, height := 2*d.score(box[2*l.Next]), 2*d.score(box[3*l.Next])
	width *= width * d.sizes[scale][anchor][0]
	height *= height * d.sizes[scale][anchor][1]
	return postprocess.Box{X1: x - width/2, Y1: y - height/2, X2: x + width/2, Y2: y + height/2}
}
