package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutRFDETR is [B,Q,4] and [B,Q,1+nc]: as LayoutDETRSigmoid, with one number more than there are classes. In the published networks they
// are COCO's ids, which are 1 to 90; in those that were trained again the first or the last number is none.
const LayoutRFDETR Layout = "rfdetr"

type rfdetr struct{}

func (rfdetr) describe() Description {
	return Description{
		Layout: LayoutRFDETR, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,1+nc] before sigmoid", Networks: "RF-DETR", Gives: boxesWithClasses,
		Preset: "rfdetr", NMSFree: true, ScanFormat: scan.Format{Logits: true},
	}
}

func (rfdetr) reads(n *network) [][]int {
	if pair := n.named([]string{"dets"}, []string{"labels"}); pair != nil {
		return [][]int{pair}
	}
	return n.pairs()
}

func (h rfdetr) measure(shapes [][]int64) (Sizes, error) { return measurePair(h, shapes) }

// number knows networks that were trained again: early versions kept the ids of Roboflow's data sets. One number more than there are labels
// may be the first, as in those, or the last, as in later ones.
func (rfdetr) number(n *network, f *Match) (Numbering, bool) {
	switch {
	case n.labels > 0 && f.Classes == n.labels+2:
		return Numbering{first: -1}, true
	case undecided(n, f):
		return Numbering{}, false
	}
	return n.number(f.Classes, 0, true)
}

// undecided reports that one number is none and nothing says whether it is the first or the last.
func undecided(n *network, f *Match) bool {
	return n.labels > 0 && f.Classes == n.labels+1 && f.Classes != cocoIDs
}

func (rfdetr) weigh(n *network, f *Match) (evidence, doubt string) {
	if len(n.outputs) == 3 && n.named([]string{"masks"}) != nil {
		return "", "" // rfdetrSegment says what is missing
	}
	return weighQueries(n, f, "boxes")
}

// weighQueries is of a head that reads of the queries what it says, and needs everything that the network gives.
func weighQueries(n *network, f *Match, what string) (evidence, doubt string) {
	switch {
	case !called(n.outputs[f.Outputs[0]].Name, "dets") || !called(n.outputs[f.Outputs[1]].Name, "labels"):
		return "", ""
	case len(n.outputs) > len(f.Outputs):
		return "", "there are other outputs beside it: " + n.String() + " (--layout rfdetr reads the boxes all the same)"
	case undecided(n, f):
		return "", fmt.Sprintf("it has %s and there are %s: what is none is the first for early versions and the last for later ones "+
			"(add a line for it, none, at that end of --labels FILE)", Plural(f.Classes, "score"), Plural(n.labels, "label"))
	}
	order := "numbered as the labels are"
	if f.Numbering.coco || f.Classes == cocoIDs {
		order = "numbered by COCO's ids"
	} else if f.Numbering.first < 0 {
		order = "numbered from 1"
	}
	return fmt.Sprintf("the outputs' names, %s of queries and %s %s", what, Plural(f.Classes, "score"), order), ""
}

func (rfdetr) boxMap(f *Match) (engine.BoxMap, bool) {
	m, ok := pairMap(f)
	return f.shares(m), ok
}
