package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutRFDETR is [B,Q,4] and [B,Q,1+nc]: as LayoutDETRSigmoid, with one more score than there are classes. In the published networks the
// numbers are COCO ids, 1 to 90; in fine-tuned ones the first or the last is no class.
const LayoutRFDETR Layout = "rfdetr"

type rfdetr struct{}

func (rfdetr) describe() Description {
	return Description{
		Layout: LayoutRFDETR, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,1+nc] before sigmoid", Networks: "RF-DETR", Gives: boxesWithClasses,
		Preset: "rfdetr", NMSFree: true, ScanFormat: scan.Format{Logits: true},
	}
}

func (rfdetr) findOutputs(n *network) [][]int {
	if pair := n.named([]string{"dets"}, []string{"labels"}); pair != nil {
		return [][]int{pair}
	}
	return n.pairs()
}

func (h rfdetr) measure(shapes [][]int64) (sizes, error) { return measurePair(h, shapes) }

// numbering handles fine-tuned networks: early versions kept the ids of Roboflow's data sets, with two scores more than labels. One more
// score than labels may be the first, as in early versions, or the last, as in later ones.
func (rfdetr) numbering(n *network, m *match) (numbering, bool) {
	switch {
	case n.labels > 0 && m.classes == n.labels+2:
		return numbering{first: -1}, true
	case undecided(n, m):
		return numbering{}, false
	}
	return n.numbering(m.classes, 0, true)
}

// undecided reports whether one score is no class and nothing specifies whether it is the first or the last.
func undecided(n *network, m *match) bool {
	return n.labels > 0 && m.classes == n.labels+1 && m.classes != cocoIDs
}

func (rfdetr) recognise(n *network, m *match) (evidence, doubt string) {
	if len(n.outputs) == 3 && n.named([]string{"masks"}) != nil {
		return "", "" // rfdetrSegment returns the doubt
	}
	return recogniseQueries(n, m, "boxes")
}

// recogniseQueries returns the evidence for a head that reads all outputs of the network: what of its queries.
func recogniseQueries(n *network, m *match, what string) (evidence, doubt string) {
	switch {
	case !hasName(n.outputs[m.outputs[0]].Name, "dets") || !hasName(n.outputs[m.outputs[1]].Name, "labels"):
		return "", ""
	case len(n.outputs) > len(m.outputs):
		return "", "there are further outputs (--layout rfdetr reads the boxes anyway)"
	case undecided(n, m):
		return "", fmt.Sprintf("it has %s and %s: a label for none is missing, first in early versions, else last (add it to --labels FILE)",
			plural(m.classes, "score"), plural(n.labels, "label"))
	}
	order := "numbered as the labels are"
	if m.numbers.coco || m.classes == cocoIDs {
		order = "numbered by COCO's ids"
	} else if m.numbers.first < 0 {
		order = "numbered from 1"
	}
	return fmt.Sprintf("the outputs' names, %s of queries and %s %s", what, plural(m.classes, "score"), order), ""
}

func (rfdetr) boxMap(m *match) (engine.BoxMap, bool) {
	b, ok := pairMap(m)
	return m.inShares(b), ok
}

func (rfdetr) newDecoder(s *settings) decoder { return newDenseDecoder(s) }
