package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutNanoDet is [B,N,nc+32]: a row for each cell with a score for each class, after its sigmoid, and for each side of the box how likely
// it is 0, 1 ... 7 strides away, before softmax (Li et al. 2020, Generalized Focal Loss).
const LayoutNanoDet Layout = "nanodet"

const (
	distances = 8 // that a side may have: reg_max + 1 of every published configuration
	sideBins  = 4 * distances
)

type nanodet struct{ labelsAsScored }

func (nanodet) describe() Description {
	return Description{
		Layout: LayoutNanoDet, Task: engine.Detect, Form: "[B,N,nc+32] with a box for each cell", Networks: "NanoDet and NanoDet-Plus",
		Gives: boxesWithClasses, Preset: "nanodet", scanned: scan.Form{Raw: true},
	}
}

func (nanodet) reads(n *network) [][]int { return n.single() }

func (h nanodet) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] <= sideBins && shape[2] != -1 {
		return sizes{}, misfit(h, shapes)
	}
	return sizes{boxes: shape[1], classes: int(max(shape[2]-sideBins, 0))}, nil
}

func (nanodet) weigh(n *network, f *fit) (evidence, doubt string) {
	return n.weighCells(f, true)
}

func (nanodet) boxMap(*fit) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

func (nanodet) decode(d *Decoder, dst []postprocess.Finding) ([]postprocess.Finding, error) {
	output, row := d.fit.outputs[0], sideBins+int64(d.now.classes)
	err := d.scanMap(&engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Offset: int64(d.now.classes), Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Step: row, Next: 1},
		Count:  int(d.now.boxes), Classes: d.now.classes,
	})
	if err != nil {
		return dst, err
	}
	cells, ok := d.now.cells(true)
	if !ok {
		return dst, d.unfit()
	}
	corner := float32(0) // distances count from the cell's corner, with the three scales of the first NanoDet from its middle
	if cells.count < 4 {
		corner = 0.5
	}
	rows, width, height := d.parts[0].data, float32(d.fit.width), float32(d.fit.height)
	d.place(func(c *scan.Candidate) {
		s, column, line := cells.cell(int(c.Index))
		stride := float32(s.stride)
		x, y := (float32(column)+corner)*stride, (float32(line)+corner)*stride
		sides := rows[int64(c.Index)*row+int64(d.now.classes):][:sideBins]
		c.X1, c.Y1 = x-stride*mean(sides[:distances]), y-stride*mean(sides[distances:2*distances])
		c.X2, c.Y2 = x+stride*mean(sides[2*distances:3*distances]), y+stride*mean(sides[3*distances:])
		c.X1, c.Y1, c.X2, c.Y2 = max(c.X1, 0), max(c.Y1, 0), min(c.X2, width), min(c.Y2, height)
	})
	return d.finish(dst), nil
}

// mean is the expected distance of a side, given the logits of all.
func mean(logits []float32) float32 {
	highest := logits[0]
	for _, v := range logits[1:] {
		highest = max(highest, v)
	}
	var sum, weighted float32
	for distance, v := range logits {
		p := exp(v - highest)
		sum, weighted = sum+p, weighted+p*float32(distance)
	}
	return weighted / sum
}
