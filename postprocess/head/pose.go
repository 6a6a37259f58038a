package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutPose is [B,4+nc+K*D,N]: a column for each box as yolov8 has it, and after the scores D numbers for each of K points: x and y in
// input pixels, and where D is 3 how likely the point is visible, after its sigmoid. LayoutPoseEnd2End is [B,N,6+K*D]: a row for each box
// as end2end has it, with the points after the class.
const (
	LayoutPose        Layout = "pose"
	LayoutPoseEnd2End Layout = "pose-end2end"
)

type pose struct {
	labelsAsScored
	ended bool // the network has suppressed already
	// What the file says: K, D and nc, 0 where it is silent.
	points, numbers, labels int
}

const boxesWithPoints = "box, class, score and keypoints of each object"

func (h pose) describe() Description {
	if h.ended {
		return Description{
			Layout: LayoutPoseEnd2End, Task: engine.Pose, Form: "[B,N,6+K*D]", Networks: "poses of YOLO26 and of Ultralytics with nms=True",
			Gives: boxesWithPoints, NMSFree: true,
		}
	}
	return Description{
		Layout: LayoutPose, Task: engine.Pose, Form: "[B,4+nc+K*D,N]", Networks: "poses of YOLOv8, 11 and others of Ultralytics",
		Gives: boxesWithPoints,
	}
}

func (h pose) adapt(n *network) head {
	return pose{ended: h.ended, points: n.metadata.Keypoints, numbers: n.metadata.KeypointNumbers, labels: n.labels}
}

func (pose) reads(n *network) [][]int { return n.single() }

func (h pose) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 {
		return Sizes{}, misfit(h, shapes)
	}
	if h.ended {
		extra := shape[2] - engine.CandidateFields
		if points, _ := h.split(int(extra)); extra < 0 || points == 0 {
			return Sizes{}, misfit(h, shapes)
		}
		return Sizes{Boxes: shape[1], Extra: int(extra)}, nil
	}
	extra := int64(h.points * h.numbers)
	if extra == 0 {
		extra = shape[1] - 4 - int64(max(h.labels, 1)) // people alone, as the published networks have it
	}
	classes := shape[1] - 4 - extra
	if points, _ := h.split(int(extra)); points == 0 || classes < 1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: shape[2], Classes: int(classes), Extra: int(extra)}, nil
}

// split is K and D of that many numbers, 0 where there are none. Three numbers a point are usual.
func (h pose) split(extra int) (points, numbers int) {
	switch {
	case extra < 2 || extra > 3*engine.MaxKeypoints:
	case h.points > 0:
		if extra == h.points*h.numbers {
			return h.points, h.numbers
		}
	case extra%3 == 0:
		return extra / 3, 3
	case extra%2 == 0:
		return extra / 2, 2
	}
	return 0, 0
}

func (h pose) weigh(n *network, f *Match) (evidence, doubt string) {
	if h.ended {
		evidence, doubt = n.weighRows(f)
	} else {
		evidence, doubt = n.weighColumns(f)
	}
	if evidence != "" && h.points == 0 {
		return "", "the file does not say how many keypoints an object has (confirm it with --layout " + string(h.describe().Layout) + ")"
	}
	return evidence, doubt
}

func (h pose) boxMap(f *Match) (engine.BoxMap, bool) {
	if h.ended {
		return engine.BoxMap{}, false
	}
	return mapBefore(f)
}

func (h pose) extra(f *Match) engine.Numbers {
	if h.ended {
		return afterRows(f)
	}
	return afterColumns(f)
}

// KeypointNames are the names of an object's keypoints by class, as far as the file says them; one list is for all classes. Where it says
// none 17 points are COCO's of a person, which nearly every network with so many was trained on.
func (f *Match) KeypointNames(m *engine.Metadata) [][]string {
	points, _ := f.Keypoints()
	switch {
	case points == 0:
		return nil
	case m.KeypointNames == nil:
		if person := postprocess.PersonKeypoints(); points == len(person) {
			return [][]string{person}
		}
		return nil
	}
	names := slices.Clone(m.KeypointNames)
	for class := range names {
		if len(names[class]) != points {
			names[class] = nil
		}
	}
	return names
}

// Keypoints is how many points an object has, and how many numbers each: 2 for a place, 3 with how visible it is. Both are 0 for other
// heads.
func (f *Match) Keypoints() (points, numbers int) {
	if h, ok := f.head.(pose); ok {
		return h.split(f.Extra)
	}
	return 0, 0
}
