package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutNanoDet is [B,N,nc+32]: a row for each cell with a score for each class, after its sigmoid, and for each side of the box the
// distribution over distances of 0, 1 ... 7 strides, before softmax (Li et al. 2020, Generalized Focal Loss).
const LayoutNanoDet Layout = "nanodet"

// BoxLogits is the number of logits of a box: for each side as many as there are distances, reg_max + 1 of every published configuration.
const BoxLogits = 4 * scan.DistanceBins

type nanodet struct{ scoredLabels }

func (nanodet) describe() Description {
	return Description{
		Layout: LayoutNanoDet, Task: engine.Detect, Form: "[B,N,nc+32] with a box for each cell", Networks: "NanoDet and NanoDet-Plus",
		Gives: boxesWithClasses, Preset: "nanodet", ScanFormat: scan.Format{Raw: true},
	}
}

func (nanodet) findOutputs(n *network) [][]int { return n.floats() }

func (h nanodet) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] <= BoxLogits && shape[2] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[1], classes: int(max(shape[2]-BoxLogits, 0))}, nil
}

func (nanodet) recognise(n *network, m *match) (evidence, doubt string) {
	if n.outputs[m.outputs[0]].Name == Levels {
		return n.recogniseLevels(m, false)
	}
	return n.recogniseCells(m, true)
}

func (nanodet) boxMap(m *match) (engine.BoxMap, bool) {
	output, row := m.outputs[0], int64(m.classes)+BoxLogits
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Offset: int64(m.classes), Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Step: row, Next: 1},
		Count:  int(m.boxes), Classes: m.classes,
	}, m.boxes > 0 && m.classes > 0
}

func (nanodet) newDecoder(s *settings) decoder { return &nanodetDecoder{boxes: newBoxes(s)} }

// nanodetDecoder decodes rows of distributions over distances.
type nanodetDecoder struct {
	boxes
	pico bool
}

func (d *nanodetDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if err := d.scan(in); err != nil {
		return dst, err
	}
	cells, ok := in.match.grid(true)
	if !ok {
		return dst, in.mismatch()
	}
	origin := float32(0) // distances count from the cell's corner; with the three scales of the first NanoDet and in PicoDet from its middle
	if cells.count < 4 || d.pico {
		origin = 0.5
	}
	rows, row := in.tensors[0].data, BoxLogits+int64(in.match.classes)
	right, bottom := float32(d.match.width), float32(d.match.height)
	d.place(&in.stats, func(c *scan.Candidate) {
		s, column, line := cells.cell(int(c.Index))
		stride := float32(s.stride)
		x, y := (float32(column)+origin)*stride, (float32(line)+origin)*stride
		var sides [BoxLogits / scan.DistanceBins]float32 // left, top, right and bottom, in cells
		scan.DecodeDistances(sides[:], rows[int64(c.Index)*row+int64(in.match.classes):])
		c.Box = postprocess.Box{X1: x - stride*sides[0], Y1: y - stride*sides[1], X2: x + stride*sides[2], Y2: y + stride*sides[3]}
		if !d.pico { // PicoDet suppresses boxes before it clips them
			c.Box = postprocess.Box{X1: max(c.X1, 0), Y1: max(c.Y1, 0), X2: min(c.X2, right), Y2: min(c.Y2, bottom)}
		}
	})
	return d.finish(in, dst), nil
}
