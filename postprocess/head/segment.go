package head

import (
	"image"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutSegment is [B,4+nc+M,N] with prototypes [B,M,h,w]: a column for each box as in LayoutYOLOv8, and after the scores M weights. The
// object's mask is the weighted sum of the prototypes, as log odds, cut to the box: "YOLACT: Real-time Instance Segmentation", Bolya et
// al., 2019. LayoutSegmentEnd2End is [B,N,6+M] with prototypes: a row for each box as in LayoutEnd2End, with the weights after the class.
const (
	LayoutSegment        Layout = "segment"
	LayoutSegmentEnd2End Layout = "segment-end2end"
)

type segment struct {
	columnsOrRows // rows: LayoutSegmentEnd2End
}

const boxesWithMasks = "box, class, score and mask of each object"

func (h segment) describe() Description {
	d := Description{
		Layout: LayoutSegment, Task: engine.Segment, Form: "[B,4+nc+M,N] with [B,M,h,w]",
		Networks: "segmentation of YOLOv8, 11 and others of Ultralytics", Gives: boxesWithMasks,
	}
	if h.rows {
		d.Layout = LayoutSegmentEnd2End
		d.Form = "[B,N,6+M] with [B,M,h,w]"
		d.Networks = "segmentation of YOLO26 and of Ultralytics with nms=True"
		d.NMSFree = true
	}
	return d
}

// findOutputs pairs every output that could be boxes with every one that could be prototypes.
func (segment) findOutputs(n *network) (all [][]int) {
	floats := n.floats()
	for _, boxes := range floats {
		for _, prototypes := range floats {
			if len(n.outputs[boxes[0]].Shape) == 3 && len(n.outputs[prototypes[0]].Shape) == 4 {
				all = append(all, []int{boxes[0], prototypes[0]})
			}
		}
	}
	return all
}

const maxPrototypes = 1024

func (h segment) measure(shapes [][]int64) (sizes, error) {
	if len(shapes) != 2 || len(shapes[0]) != 3 || len(shapes[1]) != 4 {
		return sizes{}, mismatch(h, shapes)
	}
	boxes, weights := shapes[0], shapes[1][1]
	if weights < 1 || weights > maxPrototypes {
		return sizes{}, mismatch(h, shapes)
	}
	if h.rows {
		if boxes[2] != engine.CandidateFields+weights {
			return sizes{}, mismatch(h, shapes)
		}
		return sizes{boxes: boxes[1], extra: int(weights)}, nil
	}
	classes := boxes[1] - 4 - weights
	if classes < 1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: boxes[2], classes: int(classes), extra: int(weights)}, nil
}

// recognise takes prototypes on one of the network's scales for evidence: no other head has as many of them as each box has weights.
func (h segment) recognise(n *network, m *match) (evidence, doubt string) {
	prototypes := n.outputs[m.outputs[1]].Shape
	task := n.metadata.Task
	certain := (task == "" || task == engine.Segment) && len(n.outputs) == 2 && n.isScale(prototypes[2], prototypes[3])
	switch {
	case certain && h.rows:
		if m.boxes > maxRows {
			return "", ""
		}
		return "a short list of rows with a weight for each prototype", ""
	case certain:
		cells := n.cells(m.boxes, 1, false)
		if cells == "" || n.labels == m.classes+m.extra { // every number after the coordinates is a score
			return "", ""
		}
		return cells + ", with a weight for each prototype", ""
	case h.rows:
		return n.recogniseRows(m)
	}
	return "", ""
}

func (h segment) newDecoder(s *settings) decoder { return &segmentDecoder{boxes: newBoxes(s), head: h} }

type segmentDecoder struct {
	boxes
	masks
	head    segment
	weights []float32 // of one mask
}

func (d *segmentDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if err := d.head.gather(in, &d.boxes); err != nil {
		return dst, err
	}
	first := len(dst)
	dst = d.finish(in, dst)
	if !in.scoresOnly {
		d.addMasks(in, dst[first:])
	}
	return dst, nil
}

// addMasks gives every detection its mask: the part of the prototypes' grid that its box needs.
func (d *segmentDecoder) addMasks(in *input, found []postprocess.Detection) {
	shape := in.shapes[1]
	size := image.Pt(int(shape[3]), int(shape[2]))
	all, logits := d.masks.begin(in, found, func(i int) postprocess.Mask { return maskOfBox(in, &found[i].Box, size) })
	weights, from := resize(&d.weights, in.match.extra), in.extra(d.head.extra(&in.match))
	for i := range all {
		m := &all[i]
		for w := range weights {
			weights[w] = from.at(d.origins[i], w)
		}
		count := m.Width * m.Height
		m.Logits, logits = logits[:count:count], logits[count:]
		column, row := int(m.X), int(m.Y)
		scan.WeightedSum(m.Logits, in.tensors[1].data, weights, size, image.Rect(column, row, column+m.Width, row+m.Height))
		m.X, m.Y = in.gridOffset(size, column, row)
	}
}

// maskOfBox returns the mask of a box in the image without its logits; X and Y are its first point on the prototypes' grid.
func maskOfBox(in *input, box *postprocess.Box, size image.Point) postprocess.Mask {
	m := postprocess.Mask{Bounds: image.Rect(ceil(box.X1), ceil(box.Y1), ceil(box.X2), ceil(box.Y2))}
	m.StepX, m.StepY = in.gridStep(size)
	x, y := in.gridOffset(size, 0, 0)
	left, right := gridSpan(x, m.StepX, m.Bounds.Min.X, m.Bounds.Max.X, size.X)
	top, bottom := gridSpan(y, m.StepY, m.Bounds.Min.Y, m.Bounds.Max.Y, size.Y)
	m.X, m.Y = float32(left), float32(top)
	m.Width, m.Height = right-left, bottom-top
	return m
}

// gridSpan returns the range of grid points on an axis, which has the given number of points, around the pixels from..to-1: the first
// point, and the one after the last.
func gridSpan(start, step float32, from, to, points int) (first, end int) {
	last := float32(points - 1)
	first = int(min(max(start+float32(from)*step, 0), last))
	end = int(min(max(start+float32(to-1)*step, 0), last)) + 2
	return first, min(end, points)
}
