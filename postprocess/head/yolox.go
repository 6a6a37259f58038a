package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutYOLOX is [B,N,5+nc]: a row for each cell with the centre's offset from the cell's corner in cells, the logarithms of width and
// height in cells, an objectness, and a score for each class that is multiplied by it. Exports with --decode_in_inference have the centre
// and the sides in input pixels instead; the numbers tell which.
const LayoutYOLOX Layout = "yolox"

type yolox struct{ labelsAsScored }

func (yolox) describe() Description {
	return Description{
		Layout: LayoutYOLOX, Task: engine.Detect, Form: "[B,N,5+nc] with a box for each cell", Networks: "YOLOX", Gives: boxesWithClasses,
		Preset: "yolox", ScanFormat: scan.Format{Raw: true},
	}
}

func (yolox) reads(n *network) [][]int { return n.single() }

func (h yolox) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] < 6 && shape[2] != -1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: shape[1], Classes: int(max(shape[2]-5, 0))}, nil
}

func (yolox) weigh(n *network, f *Match) (evidence, doubt string) {
	if n.namedAsYOLOv6(f) {
		return "", ""
	}
	return n.weighCells(f, false)
}

func (yolox) boxMap(f *Match) (engine.BoxMap, bool) {
	output, row := f.Outputs[0], 5+int64(f.Classes)
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Offset: 5, Step: row, Next: 1},
		Count:  int(f.Boxes), Classes: f.Classes, Objectness: true,
	}, f.Boxes > 0 && f.Classes > 0
}
