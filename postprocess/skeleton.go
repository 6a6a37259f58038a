package postprocess

import (
	"slices"
	"strings"
)

// Skeleton describes the keypoints of a class. All detections of a network share it, and it is immutable.
type Skeleton struct {
	// Names are in the order of the model's training data.
	Names []string
	// Person reports COCO's 17 keypoints of a person, whose edges and ankles are known.
	Person bool

	mirrored []int // index of the opposite keypoint
}

// NewSkeleton returns the skeleton for keypoint names.
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

// PersonKeypoints returns the names of COCO's keypoints of a person, in order.
func PersonKeypoints() []string {
	return []string{
		"nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "left_wrist",
		"right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle",
	}
}

// opposite exchanges the words left and right in a name.
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

// SwapSides exchanges left and right keypoints after an image was mirrored. It reports false if the number of points differs from the
// number of names.
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

// Keypoint returns the keypoint with that name, false if there is none.
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
