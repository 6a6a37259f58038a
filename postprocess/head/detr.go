package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutDETR is [B,Q,4] and [B,Q,nc+1]: for each query the centre's x and y, width and height as shares of the input, and logits of the
// classes and of "no object", whose softmax are the scores (Carion et al. 2020).
const LayoutDETR Layout = "detr"

type detr struct{}

func (detr) describe() Description {
	return Description{
		Layout: LayoutDETR, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,nc+1] before softmax", Networks: "DETR and YOLOS of Hugging Face",
		Gives: boxesWithClasses, Preset: "detr", NMSFree: true,
	}
}

func (detr) reads(n *network) [][]int { return n.queries() }

// measure leaves "no object" out.
func (h detr) measure(shapes [][]int64) (Sizes, error) {
	s, err := measurePair(h, shapes)
	if err == nil && s.Classes == 1 {
		return Sizes{}, misfit(h, shapes)
	}
	s.Classes = max(s.Classes-1, 0)
	return s, err
}

func (detr) number(n *network, f *Match) (Numbering, bool) { return n.number(f.Classes, 0, false) }

func (detr) weigh(n *network, f *Match) (evidence, doubt string) {
	_, agree := n.number(f.Classes, 0, false)
	switch {
	case n.labels == 0:
		return "", fmt.Sprintf("its scores could be those of %s and of no object, or, as %s, those of %s "+
			"(give the labels with --labels FILE, or name one of them with --layout)",
			Plural(f.Classes, "class"), LayoutDETRSigmoid, Plural(f.Classes+1, "class"))
	case !agree:
		return "", ""
	}
	return fmt.Sprintf("boxes of queries beside the scores of %s and of no object", Plural(f.Classes, "class")), ""
}

func (detr) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

// LayoutDETRSigmoid is [B,Q,4] and [B,Q,nc]: as LayoutDETR, but the scores are the sigmoid of logits, and there is no "no object".
const LayoutDETRSigmoid Layout = "detr-sigmoid"

type detrSigmoid struct{}

func (detrSigmoid) describe() Description {
	return Description{
		Layout: LayoutDETRSigmoid, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,nc] before sigmoid",
		Networks: "RT-DETR, Deformable and Conditional DETR, D-FINE of Hugging Face", Gives: boxesWithClasses, NMSFree: true,
		ScanFormat: scan.Format{Logits: true},
	}
}

func (detrSigmoid) reads(n *network) [][]int { return n.queries() }

func (h detrSigmoid) measure(shapes [][]int64) (Sizes, error) { return measurePair(h, shapes) }

func (detrSigmoid) number(n *network, f *Match) (Numbering, bool) {
	return n.number(f.Classes, 0, false)
}

func (detrSigmoid) weigh(n *network, f *Match) (evidence, doubt string) {
	_, agree := n.number(f.Classes, 0, false)
	if n.labels == 0 || !agree {
		return "", "" // detr says what is missing
	}
	return fmt.Sprintf("boxes of queries beside the scores of %s and nothing else", Plural(f.Classes, "class")), ""
}

func (detrSigmoid) boxMap(f *Match) (engine.BoxMap, bool) {
	m, ok := pairMap(f)
	return f.shares(m), ok
}

// queries are boxes and logits as Hugging Face's programs export them.
func (n *network) queries() [][]int {
	for _, pair := range n.pairs() {
		if called(n.outputs[pair[0]].Name, "pred_boxes") && called(n.outputs[pair[1]].Name, "logits", "pred_logits") {
			return [][]int{pair}
		}
	}
	return nil
}
