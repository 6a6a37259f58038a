package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutRFDETR is [B,Q,4] and [B,Q,1+nc]: as LayoutDETRSigmoid, but classes are numbered from 1: by COCO's ids, which are 90, in the
// published networks. What is numbered 0 is none.
const LayoutRFDETR Layout = "rfdetr"

type rfdetr struct{}

func (rfdetr) describe() Description {
	return Description{
		Layout: LayoutRFDETR, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,1+nc] before sigmoid", Networks: "RF-DETR", Gives: boxesWithClasses,
		Preset: "rfdetr", Final: true, Scanned: scan.Form{Logits: true},
	}
}

func (rfdetr) reads(n *network) [][]int {
	if pair := n.named([]string{"dets"}, []string{"labels"}); pair != nil {
		return [][]int{pair}
	}
	return n.pairs()
}

func (h rfdetr) measure(shapes [][]int64) (Sizes, error) { return measurePair(h, shapes) }

// number knows that a head that was trained again on Roboflow's data sets has one class more than there are.
func (rfdetr) number(n *network, f *Fit) (Numbering, bool) {
	if n.labels > 0 && f.Classes == n.labels+2 {
		return Numbering{first: -1}, true
	}
	return n.number(f.Classes, 0, true)
}

func (rfdetr) weigh(n *network, f *Fit) (evidence, doubt string) {
	switch {
	case !called(n.outputs[f.Outputs[0]].Name, "dets") || !called(n.outputs[f.Outputs[1]].Name, "labels"):
		return "", ""
	case len(n.outputs) > 2:
		return "", "there are other outputs beside it: " + n.String() + " (--layout rfdetr reads the boxes all the same)"
	}
	return fmt.Sprintf("the outputs' names, boxes of queries and %s numbered from 1", Plural(f.Classes-1, "class")), ""
}

func (rfdetr) boxMap(f *Fit) (engine.BoxMap, bool) {
	m, ok := pairMap(f)
	return f.shares(m), ok
}
