package head

import "github.com/edge-infer/edge-infer/engine"

// detailed is a head that says more of an object than its box.
type detailed interface {
	head
	// extra is where the numbers lie that a box has beside its coordinates and scores.
	extra(f *Match) engine.Numbers
}

// ExtraNumbers says where the numbers lie that a box has beside its coordinates and scores; false for a head that has none.
func (f *Match) ExtraNumbers() (engine.Numbers, bool) {
	h, ok := f.head.(detailed)
	if !ok {
		return engine.Numbers{}, false
	}
	return h.extra(f), true
}

// afterColumns is where extra numbers lie in a map of columns, after coordinates and scores; afterRows where they do after the six numbers
// of a row.
func afterColumns(f *Match) engine.Numbers {
	return engine.Numbers{Output: f.Outputs[0], Offset: int64(4+f.Classes) * f.Boxes, Step: 1, Next: f.Boxes}
}

func afterRows(f *Match) engine.Numbers {
	return engine.Numbers{Output: f.Outputs[0], Offset: engine.CandidateFields, Step: int64(engine.CandidateFields + f.Extra), Next: 1}
}

// mapBefore is the map of columns with a centre, sides and scores, as yolov8 has it; what follows them is left out.
func mapBefore(f *Match) (engine.BoxMap, bool) { return yolov8{}.boxMap(f) }

// weighColumns is the evidence for a map of columns that the file says is of a task.
func (n *network) weighColumns(f *Match) (evidence, doubt string) {
	if n.metadata.Task != f.Describe().Task || n.metadata.EndToEnd {
		return "", ""
	}
	if f.Boxes < 0 && f.Classes == n.labels && n.labels > 0 {
		return "the file says what it does", ""
	}
	return n.weighDense(f, 1, false, func([]int64) bool { return false })
}

// weighRows is the evidence for a short list of rows that the file says is of a task.
func (n *network) weighRows(f *Match) (evidence, doubt string) {
	if n.metadata.Task != f.Describe().Task || !n.metadata.EndToEnd || f.Boxes > mostRows {
		return "", ""
	}
	return "the file says what it does, and that its boxes are suppressed already", ""
}
