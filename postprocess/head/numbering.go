package head

import (
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

// numbering maps the class numbers of a network to the indices of its labels.
type numbering struct {
	first int  // the label of number 0; negative where the first numbers are background
	coco  bool // the numbers are COCO ids, 1 to 90 with gaps, and the labels are those of the 80 ids in use
}

// COCO uses 80 classes with ids below 91.
const (
	cocoClasses = 80
	cocoIDs     = 91
)

// areCOCO reports whether labels are COCO's 80, by at least half of the names: lists differ in how they spell some.
func areCOCO(labels []string) bool {
	if len(labels) != cocoClasses {
		return false
	}
	same := 0
	for i, name := range engine.KnownLabels("coco") {
		if strings.EqualFold(strings.TrimSpace(labels[i]), name) {
			same++
		}
	}
	return same >= cocoClasses/2
}

// cocoUnused lists the ids without a class.
var cocoUnused = [...]int{12, 26, 29, 30, 45, 66, 68, 69, 71, 83}

// class returns the index of the label, -1 for a number without one.
func (n numbering) class(number int) int {
	class := number + n.first
	if class < 0 || !n.coco {
		return max(class, -1)
	}
	if class == 0 || class >= cocoIDs {
		return -1
	}
	gaps := 0
	for _, id := range cocoUnused {
		if id == class {
			return -1
		}
		if id < class {
			gaps++
		}
	}
	return class - 1 - gaps
}

// fromOne returns the numbering of a network whose class numbers start at 1 or are COCO ids. Labels whose first is the background number
// classes as the network does.
func (n *network) fromOne() numbering {
	switch {
	case n.coco:
		return numbering{coco: true}
	case n.labels == 0 || n.labels == cocoIDs || n.background:
		return numbering{}
	}
	return numbering{first: -1}
}

// numbering returns the numbering of a network that scores that many classes, the first with the number first. With background, number 0 is
// no class. It returns false if the labels do not fit.
func (n *network) numbering(classes, first int, background bool) (numbering, bool) {
	switch numbers := classes + first; {
	case n.labels == 0 || n.labels == numbers:
		return numbering{first: first}, true
	case n.coco && numbers == cocoIDs:
		return numbering{first: first, coco: true}, true
	case background && n.labels == numbers-1:
		return numbering{first: first - 1}, true
	}
	return numbering{}, false
}
