package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutNanoDet is [B,N,nc+32]: a row for each cell with a score for each class, after its sigmoid, and for each side of the box how likely
// it is 0, 1 ... 7 strides away, before softmax (Li et al. 2020, Generalized Focal Loss).
const LayoutNanoDet Layout = "nanodet"

// BoxLogits is how many numbers a box takes: for each side as many as there are distances, reg_max + 1 of every published configuration.
const BoxLogits = 4 * scan.DistanceBins

type nanodet struct{ labelsAsScored }

func (nanodet) describe() Description {
	return Description{
		Layout: LayoutNanoDet, Task: engine.Detect, Form: "[B,N,nc+32] with a box for each cell", Networks: "NanoDet and NanoDet-Plus",
		Gives: boxesWithClasses, Preset: "nanodet", ScanFormat: scan.Format{Raw: true},
	}
}

func (nanodet) reads(n *network) [][]int { return n.single() }

func (h nanodet) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] <= BoxLogits && shape[2] != -1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: shape[1], Classes: int(max(shape[2]-BoxLogits, 0))}, nil
}

func (nanodet) weigh(n *network, f *Match) (evidence, doubt string) {
	if n.outputs[f.Outputs[0]].Name == Levels {
		return n.weighLevels(f, false)
	}
	return n.weighCells(f, true)
}

func (nanodet) boxMap(f *Match) (engine.BoxMap, bool) {
	output, row := f.Outputs[0], int64(f.Classes)+BoxLogits
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Offset: int64(f.Classes), Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Step: row, Next: 1},
		Count:  int(f.Boxes), Classes: f.Classes,
	}, f.Boxes > 0 && f.Classes > 0
}
