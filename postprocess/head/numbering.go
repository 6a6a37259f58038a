package head

// Numbering takes what a network numbers its classes with to the class numbers of its labels.
type Numbering struct {
	first int  // the class that it calls 0; negative where its first numbers are background
	coco  bool // it numbers by the ids of COCO, which are 1 to 90 with gaps, and there are labels for the 80 of them that are used
}

// COCO has so many classes in use, under ids below cocoIDs.
const (
	cocoClasses = 80
	cocoIDs     = 91
)

// cocoUnused are the ids that stand for nothing.
var cocoUnused = [...]int{12, 26, 29, 30, 45, 66, 68, 69, 71, 83}

// Class is a class number by the labels, -1 for a number that stands for none.
func (n Numbering) Class(number int) int {
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

// fromOne is the numbering of a network that gives class numbers from 1, or COCO's ids. Labels that begin with one for 0 count as the
// network does.
func (n *network) fromOne() Numbering {
	switch {
	case n.labels == cocoClasses:
		return Numbering{coco: true}
	case n.labels == 0 || n.labels == cocoIDs || n.background:
		return Numbering{}
	}
	return Numbering{first: -1}
}

// number finds the numbering of a network that scores so many classes, the first of which it calls by a number that is not always 0.
// background says that what it calls 0 is none. It reports false when the labels do not fit.
func (n *network) number(classes, first int, background bool) (Numbering, bool) {
	switch numbers := classes + first; {
	case n.labels == 0 || n.labels == numbers:
		return Numbering{first: first}, true
	case n.labels == cocoClasses && numbers == cocoIDs:
		return Numbering{first: first, coco: true}, true
	case background && n.labels == numbers-1:
		return Numbering{first: first - 1}, true
	}
	return Numbering{}, false
}
