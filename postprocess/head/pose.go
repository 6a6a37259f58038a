package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutPose is [B,4+nc+K*D,N]: a column for each box as in LayoutYOLOv8, and after the scores D numbers for each of K keypoints: x and y
// in input pixels, and where D is 3 the probability that the keypoint is visible, after its sigmoid. LayoutPoseEnd2End is [B,N,6+K*D]: a
// row for each box as in LayoutEnd2End, with the keypoints after the class.
const (
	LayoutPose        Layout = "pose"
	LayoutPoseEnd2End Layout = "pose-end2end"
)

type pose struct {
	columnsOrRows // rows: LayoutPoseEnd2End
	// Of the file: K, D, nc and the names by class; 0 and nil where it does not specify them.
	points, numbers, labels int
	names                   [][]string
}

func (h pose) describe() Description {
	d := Description{
		Layout: LayoutPose, Task: engine.Pose, Form: "[B,4+nc+K*D,N]", Networks: "poses of YOLOv8, 11 and others of Ultralytics",
		Gives: "box, class, score and keypoints of each object",
	}
	if h.rows {
		d.Layout = LayoutPoseEnd2End
		d.Form = "[B,N,6+K*D]"
		d.Networks = "poses of YOLO26 and of Ultralytics with nms=True"
		d.NMSFree = true
	}
	return d
}

func (h pose) configure(n *network) head {
	h.points = n.metadata.Keypoints
	h.numbers = n.metadata.KeypointNumbers
	h.labels = n.labels
	h.names = n.metadata.KeypointNames
	return h
}

func (pose) findOutputs(n *network) [][]int { return n.floats() }

func (h pose) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 {
		return sizes{}, mismatch(h, shapes)
	}
	if h.rows {
		extra := shape[2] - engine.CandidateFields
		if points, _ := h.split(int(extra)); extra < 0 || points == 0 {
			return sizes{}, mismatch(h, shapes)
		}
		return sizes{boxes: shape[1], extra: int(extra)}, nil
	}
	extra := int64(h.points * h.numbers)
	if extra == 0 {
		extra = shape[1] - 4 - int64(max(h.labels, 1)) // one class, people, in the published networks
	}
	classes := shape[1] - 4 - extra
	if points, _ := h.split(int(extra)); points == 0 || classes < 1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[2], classes: int(classes), extra: int(extra)}, nil
}

// split returns K and D for that many numbers, 0 if they are not keypoints. D is 3 where the file does not specify it and both would fit.
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

func (h pose) recognise(n *network, m *match) (evidence, doubt string) {
	if h.rows {
		evidence, doubt = n.recogniseRows(m)
	} else {
		evidence, doubt = n.recogniseColumns(m)
	}
	unique := h.labels > 0 && (m.extra%3 == 0) != (m.extra%2 == 0) // K*D has one K
	if evidence != "" && h.points == 0 && !unique {
		return "", "the file does not specify the number of keypoints (confirm it with --layout " + string(h.describe().Layout) + ")"
	}
	return evidence, doubt
}

func (h pose) keypoints(m *match) (count int, names [][]string) {
	count, _ = h.split(m.extra)
	return count, h.keypointNames(m)
}

// keypointNames returns the names of an object's keypoints by class; a single list is for all classes. Where the file has no names, 17
// keypoints are those of a person in COCO, on which nearly all such networks were trained.
func (h pose) keypointNames(m *match) [][]string {
	points, _ := h.split(m.extra)
	if h.names == nil {
		if person := postprocess.PersonKeypoints(); points == len(person) {
			return [][]string{person}
		}
		return nil
	}
	names := slices.Clone(h.names)
	for class := range names {
		if len(names[class]) != points {
			names[class] = nil
		}
	}
	return names
}

func (h pose) newDecoder(s *settings) decoder {
	names := h.keypointNames(&s.match)
	d := &poseDecoder{boxes: newBoxes(s), head: h, skeletons: make([]*postprocess.Skeleton, len(names))}
	for class, own := range names {
		if own != nil {
			d.skeletons[class] = postprocess.NewSkeleton(own)
		}
	}
	return d
}

type poseDecoder struct {
	boxes
	poses
	head      pose
	skeletons []*postprocess.Skeleton // by class, or one for all; nil where the keypoints have no names
}

func (d *poseDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if err := d.head.gather(in, &d.boxes); err != nil {
		return dst, err
	}
	first := len(dst)
	dst = d.finish(in, dst)
	if !in.scoresOnly {
		d.addKeypoints(in, dst[first:])
	}
	return dst, nil
}

// addKeypoints gives every detection its keypoints.
func (d *poseDecoder) addKeypoints(in *input, found []postprocess.Detection) {
	points, each := d.head.split(in.match.extra)
	from := in.extra(d.head.extra(&in.match))
	d.poses.add(in, found, points, func(i int, own []postprocess.Keypoint) *postprocess.Skeleton {
		box := d.origins[i]
		for k := range own {
			own[k] = postprocess.Keypoint{X: from.at(box, k*each), Y: from.at(box, k*each+1), Score: 1}
			if each == 3 {
				own[k].Score = from.at(box, k*each+2)
			}
		}
		return d.skeleton(found[i].Class)
	})
}

// skeleton returns the skeleton of a class; nil where its keypoints have no names.
func (d *poseDecoder) skeleton(class int) *postprocess.Skeleton {
	switch {
	case len(d.skeletons) == 1:
		return d.skeletons[0]
	case class >= 0 && class < len(d.skeletons):
		return d.skeletons[class]
	}
	return nil
}
