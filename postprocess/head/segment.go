package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutSegment is [B,4+nc+M,N] with prototypes [B,M,h,w]: a column for each box as yolov8 has it, and after the scores M weights. The
// object's mask is the sum of the prototypes by its weights, as log odds, cut to the box: "YOLACT: Real-time Instance Segmentation", Bolya
// et al., 2019. LayoutSegmentEnd2End is [B,N,6+M] with prototypes: a row for each box as end2end has it, with the weights after the class.
const (
	LayoutSegment        Layout = "segment"
	LayoutSegmentEnd2End Layout = "segment-end2end"
)

type segment struct {
	labelsAsScored
	ended bool // the network has suppressed already
}

const boxesWithMasks = "box, class, score and mask of each object"

func (h segment) describe() Description {
	if h.ended {
		return Description{
			Layout: LayoutSegmentEnd2End, Task: engine.Segment, Form: "[B,N,6+M] with [B,M,h,w]",
			Networks: "segmentation of YOLO26 and of Ultralytics with nms=True", Gives: boxesWithMasks, NMSFree: true,
		}
	}
	return Description{
		Layout: LayoutSegment, Task: engine.Segment, Form: "[B,4+nc+M,N] with [B,M,h,w]",
		Networks: "segmentation of YOLOv8, 11 and others of Ultralytics", Gives: boxesWithMasks,
	}
}

// reads pairs every output of boxes with every one of prototypes.
func (segment) reads(n *network) (all [][]int) {
	single := n.single()
	for _, boxes := range single {
		for _, prototypes := range single {
			if len(n.outputs[boxes[0]].Shape) == 3 && len(n.outputs[prototypes[0]].Shape) == 4 {
				all = append(all, []int{boxes[0], prototypes[0]})
			}
		}
	}
	return all
}

// mostPrototypes bounds what one mask is a sum of.
const mostPrototypes = 1024

func (h segment) measure(shapes [][]int64) (Sizes, error) {
	if len(shapes) != 2 || len(shapes[0]) != 3 || len(shapes[1]) != 4 {
		return Sizes{}, misfit(h, shapes)
	}
	boxes, weights := shapes[0], shapes[1][1]
	if weights < 1 || weights > mostPrototypes {
		return Sizes{}, misfit(h, shapes)
	}
	if h.ended {
		if boxes[2] != engine.CandidateFields+weights {
			return Sizes{}, misfit(h, shapes)
		}
		return Sizes{Boxes: boxes[1], Extra: int(weights)}, nil
	}
	classes := boxes[1] - 4 - weights
	if classes < 1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: boxes[2], Classes: int(classes), Extra: int(weights)}, nil
}

// weigh takes prototypes on one of the network's scales for evidence: nothing else has as many of them as each box has weights.
func (h segment) weigh(n *network, f *Match) (evidence, doubt string) {
	if task := n.metadata.Task; task == "" || task == engine.Segment {
		if prototypes := n.outputs[f.Outputs[1]].Shape; len(n.outputs) == 2 && n.scale(prototypes[2], prototypes[3]) {
			return h.weighBoxes(n, f)
		}
	}
	if h.ended {
		return n.weighRows(f)
	}
	return "", ""
}

func (h segment) weighBoxes(n *network, f *Match) (evidence, doubt string) {
	if h.ended {
		if f.Boxes > mostRows {
			return "", ""
		}
		return "a short list of rows with a weight for each prototype", ""
	}
	cells := n.cells(f.Boxes, 1, false)
	if cells == "" || n.labels == f.Classes+f.Extra { // every number after the coordinates is a score
		return "", ""
	}
	return cells + ", with a weight for each prototype", ""
}

func (h segment) boxMap(f *Match) (engine.BoxMap, bool) {
	if h.ended {
		return engine.BoxMap{}, false
	}
	return mapBefore(f)
}

func (h segment) extra(f *Match) engine.Numbers {
	if h.ended {
		return afterRows(f)
	}
	return afterColumns(f)
}
