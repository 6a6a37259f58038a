package engine

import (
	"fmt"
	"slices"
)

// BoxMap says where a network's outputs keep boxes and their class scores. The head that recognised the outputs makes it, and whatever
// reads boxes, on the host or on a device, goes by it instead of guessing again.
type BoxMap struct {
	// Boxes are the four coordinates of each box, Scores the scores of its classes.
	Boxes, Scores Numbers
	// Count is the number of boxes of an image, Classes that of scores of a box.
	Count, Classes int
	// Objectness says that the number before a box's first score multiplies all of them.
	Objectness bool
	// Corners says that the coordinates are x1, y1, x2, y2; otherwise they are the centre's x and y, width and height.
	Corners bool
	// ScaleX and ScaleY take the coordinates to pixels of the input: 1 where they are pixels, the input's sides where they are shares of them.
	ScaleX, ScaleY float32
}

// Numbers is where the numbers of boxes lie in an output: number i of box b is element Offset + b*Step + i*Next of an image's part.
type Numbers struct {
	Output             int // number of the output among the model's
	Offset, Step, Next int64
}

// at is the element of a number.
func (n Numbers) at(box, i int) int64 { return n.Offset + int64(box)*n.Step + int64(i)*n.Next }

// Check reports a map that leaves the outputs, whose shapes must be known but for the batch, or is none, as an *Error that is ErrShape.
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

// Filter has an engine list the boxes over a threshold on its device, so that only they cross to the host: each with its best class.
type Filter struct {
	BoxMap
	// Threshold is the lowest score that is listed, over 0.
	Threshold float32
}
