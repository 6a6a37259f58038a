package engine

import (
	"fmt"
	"slices"
)

// BoxMap locates boxes and class scores in a network's outputs. The head that recognised the outputs creates it; decoders on the host and
// on a device use it.
type BoxMap struct {
	// Boxes are the four coordinates of each box, Scores the scores of its classes.
	Boxes, Scores Numbers
	// Count is the number of boxes per image, Classes the number of scores per box.
	Count, Classes int
	// Objectness is set if the number before a box's first score is a factor of all its scores.
	Objectness bool
	// Corners is set if the coordinates are x1, y1, x2, y2; otherwise they are centre x, centre y, width and height.
	Corners bool
	// ScaleX and ScaleY convert coordinates to input pixels: 1 for pixels, the input's sides for relative coordinates.
	ScaleX, ScaleY float32
}

// Numbers locates the numbers of boxes in an output: number i of box b is element Offset + b*Step + i*Next of an image's part.
type Numbers struct {
	Output             int // index of the model's output
	Offset, Step, Next int64
}

// at returns the index of an element.
func (n Numbers) at(box, i int) int64 { return n.Offset + int64(box)*n.Step + int64(i)*n.Next }

// Check returns an *Error that is ErrShape if the map exceeds the outputs. All dimensions except the batch must be known.
func (m *BoxMap) Check(outputs []TensorInfo) error {
	bad := func(format string, arguments ...any) error {
		return &Error{Op: "filter", Kind: ErrShape, Message: fmt.Sprintf(format, arguments...)}
	}
	const most = 1 << 30
	if m.Count < 1 || m.Classes < 1 || m.Count > most || m.Classes > most || !(m.ScaleX > 0 && m.ScaleY > 0) {
		return bad("%d boxes of %d classes, scaled by %v and %v", m.Count, m.Classes, m.ScaleX, m.ScaleY)
	}
	lowest := m.Scores.Offset
	if m.Objectness {
		lowest -= m.Scores.Next
	}
	for _, part := range []struct {
		Numbers
		first, last int64
	}{
		{m.Boxes, m.Boxes.Offset, m.Boxes.at(m.Count-1, 3)},
		{m.Scores, lowest, m.Scores.at(m.Count-1, m.Classes-1)},
	} {
		if part.Output < 0 || part.Output >= len(outputs) {
			return bad("output %d, the model has %d", part.Output, len(outputs))
		}
		shape, elements := outputs[part.Output].Shape, int64(1)
		for _, n := range shape[min(1, len(shape)):] {
			if n < 1 || n > most/elements {
				return bad("output %s has shape %v", outputs[part.Output].Name, shape)
			}
			elements *= n
		}
		numbers := []int64{part.Offset, part.Step, part.Next}
		outside := slices.ContainsFunc(numbers, func(n int64) bool { return n < 0 || n > most })
		if outside || part.first < 0 || part.last >= elements {
			return bad("numbers %+v of %d boxes and %d classes leave output %s with shape %v",
				part.Numbers, m.Count, m.Classes, outputs[part.Output].Name, shape)
		}
	}
	return nil
}

// Filter makes an engine list the boxes above a threshold on its device, each with its best class, so that only these reach the host.
type Filter struct {
	BoxMap
	// Threshold is the minimum score, over 0.
	Threshold float32
}
