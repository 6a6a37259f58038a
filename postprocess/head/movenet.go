package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutMoveNet is [B,1,17,3], the y, x and score of COCO's keypoints of one person as shares of the input; LayoutMoveNetMultiPose is
// [B,P,56] with these numbers of up to P people, each followed by the box's y1, x1, y2, x2 and its score. Source: TensorFlow Hub's model
// cards of MoveNet.
const (
	LayoutMoveNet          Layout = "movenet"
	LayoutMoveNetMultiPose Layout = "movenet-multipose"
)

// Numbers of a person in the outputs.
const (
	personPoints  = 17
	personNumbers = 3 * personPoints
	personRow     = personNumbers + 5
)

// minPoseScore is the score from which a keypoint belongs to the person: TensorFlow's examples crop the next image by such keypoints.
const minPoseScore = 0.2

type moveNet struct {
	scoredLabels
	noBoxMap
	multiple bool // LayoutMoveNetMultiPose
}

func (h moveNet) describe() Description {
	d := Description{
		Layout: LayoutMoveNet, Task: engine.Pose, Form: "[B,1,17,3]", Networks: "MoveNet Lightning and Thunder",
		Gives: "box, score and keypoints of a person", Preset: "movenet", NMSFree: true,
	}
	if h.multiple {
		d.Layout = LayoutMoveNetMultiPose
		d.Form = "[B,P,56]"
		d.Networks = "MoveNet MultiPose"
		d.Gives = "box, score and keypoints of each person"
	}
	return d
}

func (moveNet) findOutputs(n *network) [][]int { return n.floats() }

func (h moveNet) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	switch {
	case h.multiple && len(shape) == 3 && shape[2] == personRow:
		return sizes{boxes: shape[1], classes: 1, extra: personNumbers}, nil
	case !h.multiple && len(shape) == 4 && shape[1] == 1 && shape[2] == personPoints && shape[3] == 3:
		return sizes{boxes: 1, classes: 1, extra: personNumbers}, nil
	}
	return sizes{}, mismatch(h, shapes)
}

// maxPeople is above the number of rows of published networks, 6 to 20.
const maxPeople = 100

func (h moveNet) recognise(n *network, m *match) (evidence, doubt string) {
	if len(n.outputs) > 1 || m.boxes > maxPeople {
		return "", ""
	}
	if h.multiple {
		return "rows of 17 keypoints, a box and its score", ""
	}
	return "17 keypoints of a person", ""
}

func (moveNet) keypoints(*match) (count int, names [][]string) {
	return personPoints, [][]string{postprocess.PersonKeypoints()}
}

func (h moveNet) newDecoder(s *settings) decoder {
	return &moveNetDecoder{boxes: newBoxes(s), head: h, skeleton: postprocess.NewSkeleton(postprocess.PersonKeypoints())}
}

type moveNetDecoder struct {
	boxes
	poses
	head     moveNet
	skeleton *postprocess.Skeleton
}

func (d *moveNetDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	data, each := in.tensors[0].data, personNumbers
	if d.head.multiple {
		each = personRow
	}
	width, height := float32(d.match.width), float32(d.match.height)
	d.beginList(len(data) / each)
	for person := range len(data) / each {
		row := data[person*each:][:each]
		y1, x1, y2, x2, score := boundsOfPose(row)
		if d.head.multiple {
			at := row[personNumbers:]
			y1, x1 = at[0], at[1]
			y2, x2 = at[2], at[3]
			score = at[4]
		}
		found := [engine.CandidateFields]float32{x1 * width, y1 * height, x2 * width, y2 * height, score, 0}
		d.take(in, &found, int32(person))
	}
	before := len(dst)
	dst = d.finish(in, dst)
	if in.scoresOnly {
		return dst, nil
	}
	found := dst[before:]
	d.poses.add(in, found, personPoints, func(i int, own []postprocess.Keypoint) *postprocess.Skeleton {
		row := data[int(d.origins[i])*each:]
		for k := range own {
			own[k] = postprocess.Keypoint{X: row[3*k+1] * width, Y: row[3*k] * height, Score: row[3*k+2]}
		}
		return d.skeleton
	})
	return dst, nil
}

// boundsOfPose returns the bounds of the keypoints that belong to the person, 0 without any, and the mean score of all keypoints.
func boundsOfPose(points []float32) (y1, x1, y2, x2, score float32) {
	y1, x1 = 2, 2
	y2, x2 = -1, -1
	sum := float32(0)
	for k := range personPoints {
		y, x, own := points[3*k], points[3*k+1], points[3*k+2]
		sum += own
		if own >= minPoseScore {
			y1, y2 = min(y1, y), max(y2, y)
			x1, x2 = min(x1, x), max(x2, x)
		}
	}
	if y2 < y1 {
		return 0, 0, 0, 0, sum / personPoints
	}
	return y1, x1, y2, x2, sum / personPoints
}
