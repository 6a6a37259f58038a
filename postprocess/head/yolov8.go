package head

import (
	"github.com/edge-infer/edge-infer/engine"
)

// LayoutYOLOv8 is [B,4+nc,N]: a column for each box with the centre's x and y, width and height in input pixels, and a score for each
// class, after its sigmoid. There is one box in each cell.
const LayoutYOLOv8 Layout = "yolov8"

type yolov8 struct{ labelsAsScored }

func (yolov8) describe() Description {
	return Description{
		Layout: LayoutYOLOv8, Task: engine.Detect, Form: "[B,4+nc,N]", Networks: "YOLOv8, v9, 11, 12 and others of Ultralytics, YOLOv5u",
		Gives: boxesWithClasses,
	}
}

func (yolov8) reads(n *network) [][]int { return n.single() }

func (h yolov8) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[1] < 5 && shape[1] != -1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: shape[2], Classes: int(max(shape[1]-4, 0))}, nil
}

// weigh takes maps of 16 distances to each side and the classes, one for each scale, for what was decoded.
func (yolov8) weigh(n *network, f *Match) (evidence, doubt string) {
	return n.weighDense(f, 1, false, func(shape []int64) bool {
		return len(shape) == 4 && shape[1] == 64+int64(f.Classes) && n.scale(shape[2], shape[3])
	})
}

func (yolov8) boxMap(f *Match) (engine.BoxMap, bool) {
	output := f.Outputs[0]
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: 1, Next: f.Boxes},
		Scores: engine.Numbers{Output: output, Offset: 4 * f.Boxes, Step: 1, Next: f.Boxes},
		Count:  int(f.Boxes), Classes: f.Classes, ScaleX: 1, ScaleY: 1,
	}, f.Boxes > 0 && f.Classes > 0
}
