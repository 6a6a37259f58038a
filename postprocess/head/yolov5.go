package head

import (
	"github.com/edge-infer/edge-infer/engine"
)

// LayoutYOLOv5 is [B,N,5+nc]: a row for each box with the centre's x and y, width and height in input pixels, an objectness, and a score
// for each class that is multiplied by it. There are three boxes in each cell.
const LayoutYOLOv5 Layout = "yolov5"

type yolov5 struct{ labelsAsScored }

func (yolov5) describe() Description {
	return Description{
		Layout: LayoutYOLOv5, Task: engine.Detect, Form: "[B,N,5+nc]", Networks: "YOLOv5 and YOLOv7 of the original repositories",
		Gives: boxesWithClasses,
	}
}

func (yolov5) reads(n *network) [][]int { return n.single() }

func (h yolov5) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] < 6 && shape[2] != -1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: shape[1], Classes: int(max(shape[2]-5, 0))}, nil
}

// weigh takes maps of 3 boxes in each cell, one for each scale, for what was decoded.
func (yolov5) weigh(n *network, f *Match) (evidence, doubt string) {
	row := 5 + int64(f.Classes)
	if f.Classes == 1 && f.Boxes <= mostRows && n.cells(f.Boxes, 3, false) != "" {
		return "", "it could be end2end as well (name one of them with --layout)"
	}
	return n.weighDense(f, 3, false, func(shape []int64) bool {
		switch len(shape) {
		case 5:
			return shape[1] == 3 && n.scale(shape[2], shape[3]) && shape[4] == row
		case 4:
			return shape[1] == 3*row && n.scale(shape[2], shape[3])
		}
		return false
	})
}

func (yolov5) boxMap(f *Match) (engine.BoxMap, bool) {
	output, row := f.Outputs[0], 5+int64(f.Classes)
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Offset: 5, Step: row, Next: 1},
		Count:  int(f.Boxes), Classes: f.Classes, Objectness: true, ScaleX: 1, ScaleY: 1,
	}, f.Boxes > 0 && f.Classes > 0
}
