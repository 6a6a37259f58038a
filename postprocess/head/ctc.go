package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutCTC is [B,T,nc]: a character for each of T steps along a line of text, or the blank between two, which is class 0.
// LayoutCTCBlankLast calls its last class the blank.
const (
	LayoutCTC          Layout = "ctc"
	LayoutCTCBlankLast Layout = "ctc-blank-last"
)

// ctc reads lines of text, number plates for instance. Its labels are its alphabet, as a rule without the blank.
type ctc struct {
	last bool
}

func (h ctc) describe() Description {
	about := Description{
		Layout: LayoutCTC, Task: engine.Read, Form: "[B,T,nc]", Networks: "text readers of PaddleOCR, CRNN and others, blank first",
		Gives: "the characters of a line of text, in their order",
	}
	if h.last {
		about.Layout, about.Networks = LayoutCTCBlankLast, "text readers of Keras, LPRNet and others, blank last"
	}
	return about
}

func (ctc) reads(n *network) [][]int { return n.single() }

func (h ctc) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] == 1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: shape[1], Classes: int(max(shape[2], 0))}, nil
}

// weigh finds nothing: a list of boxes has the same form, so somebody has to name it.
func (ctc) weigh(*network, *Match) (evidence, doubt string) { return "", "" }

func (ctc) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

// number leaves the blank out where the labels do. Where they have one for each class, the blank is the first or the last all the same.
func (h ctc) number(n *network, f *Match) (Numbering, bool) {
	switch {
	case n.labels == 0 || f.Classes == 0 || n.labels == f.Classes || h.last && n.labels == f.Classes-1:
		return Numbering{}, true
	case !h.last && n.labels == f.Classes-1:
		return Numbering{first: -1}, true
	}
	return Numbering{}, false
}
