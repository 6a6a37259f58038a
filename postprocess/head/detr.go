package head

import (
	"fmt"
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutDETR is [B,Q,4] and [B,Q,nc+1]: for each query the centre's x and y, width and height as shares of the input, and logits of the
// classes and of "no object", whose softmax are the scores (Carion et al. 2020).
const LayoutDETR Layout = "detr"

type detr struct{ noBoxMap }

func (detr) describe() Description {
	return Description{
		Layout: LayoutDETR, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,nc+1] before softmax", Networks: "DETR and YOLOS of Hugging Face",
		Gives: boxesWithClasses, Preset: "detr", NMSFree: true,
	}
}

func (detr) findOutputs(n *network) [][]int { return n.queries() }

// measure does not count "no object" as a class.
func (h detr) measure(shapes [][]int64) (sizes, error) {
	s, err := measurePair(h, shapes)
	if err == nil && s.classes == 1 {
		return sizes{}, mismatch(h, shapes)
	}
	s.classes = max(s.classes-1, 0)
	return s, err
}

func (detr) numbering(n *network, m *match) (numbering, bool) {
	return n.numbering(m.classes, 0, false)
}

func (detr) recognise(n *network, m *match) (evidence, doubt string) {
	_, agree := n.numbering(m.classes, 0, false)
	switch {
	case n.labels == 0:
		return "", fmt.Sprintf("its scores could be those of %s and of no object, or of %s (give the labels with --labels FILE)",
			plural(m.classes, "class"), plural(m.classes+1, "class"))
	case !agree:
		return "", ""
	}
	return fmt.Sprintf("boxes of queries beside the scores of %s and of no object", plural(m.classes, "class")), ""
}

func (detr) newDecoder(s *settings) decoder {
	least := float64(s.leastMinScore())
	return &detrDecoder{boxes: newBoxes(s), odds: float32(math.Log(least / (1 - least)))}
}

type detrDecoder struct {
	boxes
	odds    float32 // log odds of the lowest minimum score
	queries []scan.Query
}

func (d *detrDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	coordinates, logits, classes := in.tensors[0].data, in.tensors[1].data, in.match.classes
	count := int(in.match.boxes)
	if len(d.queries) < count {
		d.queries = make([]scan.Query, count)
	}
	if d.MultiLabel {
		count *= classes
	}
	d.beginList(count)
	stats := &in.stats
	scaleX, scaleY := float32(d.match.width), float32(d.match.height)
	// A class above the minimum score is more likely than no object by the same odds, whatever the other classes are.
	for _, q := range d.queries[:scan.FilterQueries(d.queries, logits, classes, d.odds)] {
		share := 1 / q.Sum
		if !(q.Sum > 0 && q.Sum <= math.MaxFloat32) {
			stats.BadScores++
			stats.Invalid++
			continue
		}
		row := logits[int(q.Row)*(classes+1):][:classes]
		b := coordinates[4*q.Row:][:4]
		x, y := b[0]*scaleX, b[1]*scaleY
		width, height := b[2]*scaleX, b[3]*scaleY
		c := scan.Candidate{Index: q.Row, Box: postprocess.Box{X1: x - width/2, Y1: y - height/2, X2: x + width/2, Y2: y + height/2}}
		first, last := int(q.Class), int(q.Class)
		if d.MultiLabel {
			first, last = 0, classes-1
		}
		for class := first; class <= last; class++ {
			c.Class, c.Score = int32(class), exp(row[class]-q.MaxLogit)*share
			number := d.match.numbers.class(class)
			switch {
			case number < 0 || number >= d.classes || c.Score < d.minScores[number]:
			case !valid(&c.Box):
				stats.Invalid++
			default:
				d.candidates = append(d.candidates, c)
			}
		}
	}
	stats.Candidates = len(d.candidates)
	return d.finish(in, dst), nil
}

// LayoutDETRSigmoid is [B,Q,4] and [B,Q,nc]: as LayoutDETR, but the scores are the sigmoid of logits, and there is no "no object".
const LayoutDETRSigmoid Layout = "detr-sigmoid"

type detrSigmoid struct{}

func (detrSigmoid) describe() Description {
	return Description{
		Layout: LayoutDETRSigmoid, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,nc] before sigmoid",
		Networks: "RT-DETR, Deformable and Conditional DETR, D-FINE of Hugging Face", Gives: boxesWithClasses, NMSFree: true,
		ScanFormat:  scan.Format{Logits: true},
		Unspecified: "how the images of " + string(LayoutDETRSigmoid) + " are scaled, which its networks differ in",
	}
}

func (detrSigmoid) findOutputs(n *network) [][]int { return n.queries() }

func (h detrSigmoid) measure(shapes [][]int64) (sizes, error) { return measurePair(h, shapes) }

func (detrSigmoid) numbering(n *network, m *match) (numbering, bool) {
	return n.numbering(m.classes, 0, false)
}

func (detrSigmoid) recognise(n *network, m *match) (evidence, doubt string) {
	_, agree := n.numbering(m.classes, 0, false)
	if n.labels == 0 || !agree {
		return "", "" // detr returns the doubt
	}
	return fmt.Sprintf("boxes of queries beside the scores of %s and nothing else", plural(m.classes, "class")), ""
}

func (detrSigmoid) boxMap(m *match) (engine.BoxMap, bool) {
	b, ok := pairMap(m)
	return m.inShares(b), ok
}

func (detrSigmoid) newDecoder(s *settings) decoder { return newDenseDecoder(s) }

// queries finds boxes and logits with the names of Hugging Face's exports.
func (n *network) queries() [][]int {
	for _, pair := range n.pairs() {
		if hasName(n.outputs[pair[0]].Name, "pred_boxes") && hasName(n.outputs[pair[1]].Name, "logits", "pred_logits") {
			return [][]int{pair}
		}
	}
	return nil
}
