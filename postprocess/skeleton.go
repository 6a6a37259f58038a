package postprocess

import (
	"slices"
	"strings"
)

// Skeleton is what is known of the keypoints of a class's objects. All detections of a network share it, and nobody changes it.
type Skeleton struct {
	// Names are the keypoints', in the order that the model was trained with.
	Names []string
	// Person says that they are COCO's 17 of a person: which of them are joined, and which stand on the ground, is known.
	Person bool

	mirrored []int // the number of the point that takes a point's place in a mirrored image
}

// NewSkeleton knows what the names say.
func NewSkeleton(names []string) *Skeleton {
	s := &Skeleton{Names: names, Person: slices.Equal(names, PersonKeypoints()), mirrored: make([]int, len(names))}
	for i, name := range names {
		s.mirrored[i] = i
		if other := slices.Index(names, opposite(name)); other >= 0 {
			s.mirrored[i] = other
		}
	}
	return s
}

// PersonKeypoints are the names of COCO's keypoints of a person, in their order.
func PersonKeypoints() []string {
	return []string{
		"nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "left_wrist",
		"right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle",
	}
}

// opposite is a name with left for right and right for left, where that is a word of it.
func opposite(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words {
		switch word {
		case "left":
			words[i] = "right"
		case "right":
			words[i] = "left"
		}
	}
	return strings.Join(words, "_")
}

// Mirror gives the points of an object that was seen in a mirrored image the names that they have in the image itself: what was left is
// right. It reports whether it could: there must be as many points as names.
func (s *Skeleton) SwapSides(points []Keypoint) bool {
	if len(points) != len(s.Names) {
		return false
	}
	for i, other := range s.mirrored {
		if other > i && s.mirrored[other] == i {
			points[i], points[other] = points[other], points[i]
		}
	}
	return true
}

// Keypoint is the keypoint of that name, and whether the object has one that is named so.
func (d *Detail) Keypoint(name string) (Keypoint, bool) {
	if d == nil || d.Skeleton == nil || len(d.Keypoints) != len(d.Skeleton.Names) {
		return Keypoint{}, false
	}
	i := slices.Index(d.Skeleton.Names, name)
	if i < 0 {
		return Keypoint{}, false
	}
	return d.Keypoints[i], true
}

// IsPerson reports whether the keypoints are COCO's 17 of a person.
func (d *Detail) IsPerson() bool {
	return d != nil && d.Skeleton != nil && d.Skeleton.Person && len(d.Keypoints) == len(d.Skeleton.Names)
}
