package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutOBB is [B,4+nc+1,N]: a column for each box as yolov8 has it, and after the scores the angle in radians by which the box is turned
// clockwise around its centre. LayoutOBBEnd2End is [B,N,7]: a row for each box with its centre's x and y, width, height, score, class and
// angle.
const (
	LayoutOBB        Layout = "obb"
	LayoutOBBEnd2End Layout = "obb-end2end"
)

type obb struct {
	labelsAsScored
	ended bool // the network has suppressed already
}

const boxesWithAngles = "turned box, the box around it, class and score of each object"

func (h obb) describe() Description {
	if h.ended {
		return Description{
			Layout: LayoutOBBEnd2End, Task: engine.OBB, Form: "[B,N,7]", Networks: "oriented boxes of YOLO26 and of Ultralytics with nms=True",
			Gives: boxesWithAngles, NMSFree: true,
		}
	}
	return Description{
		Layout: LayoutOBB, Task: engine.OBB, Form: "[B,4+nc+1,N]", Networks: "oriented boxes of YOLOv8, 11 and others of Ultralytics",
		Gives: boxesWithAngles,
	}
}

func (obb) reads(n *network) [][]int { return n.single() }

func (h obb) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	switch {
	case len(shape) != 3, h.ended && shape[2] != engine.CandidateFields+1, !h.ended && shape[1] < 6:
		return Sizes{}, misfit(h, shapes)
	case h.ended:
		return Sizes{Boxes: shape[1], Extra: 1}, nil
	}
	return Sizes{Boxes: shape[2], Classes: int(shape[1] - 5), Extra: 1}, nil
}

func (h obb) weigh(n *network, f *Match) (evidence, doubt string) {
	if h.ended {
		return n.weighRows(f)
	}
	return n.weighColumns(f)
}

func (h obb) boxMap(f *Match) (engine.BoxMap, bool) {
	if h.ended {
		return engine.BoxMap{}, false
	}
	return mapBefore(f)
}

func (h obb) extra(f *Match) engine.Numbers {
	if h.ended {
		return afterRows(f)
	}
	return afterColumns(f)
}
