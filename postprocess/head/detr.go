package head

import (
	"fmt"
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutDETR is [B,Q,4] and [B,Q,nc+1]: for each query the centre's x and y, width and height as shares of the input, and logits of the classes
// and of "no object", whose softmax are the scores (Carion et al. 2020).
const LayoutDETR Layout = "detr"

type detr struct{}

func (detr) describe() Description {
	return Description{
		Layout: LayoutDETR, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,nc+1] before softmax", Networks: "DETR and YOLOS of Hugging Face",
		Gives: boxesWithClasses, Preset: "imagenet", Final: true,
	}
}

func (detr) reads(n *network) [][]int { return n.queries() }

// measure leaves "no object" out.
func (h detr) measure(shapes [][]int64) (sizes, error) {
	s, err := measurePair(h, shapes)
	if err == nil && s.classes == 1 {
		return sizes{}, misfit(h, shapes)
	}
	s.classes = max(s.classes-1, 0)
	return s, err
}

func (detr) number(n *network, f *fit) (numbering, bool) { return n.number(f.classes, 0, false) }

func (detr) weigh(n *network, f *fit) (evidence, doubt string) {
	_, agree := n.number(f.classes, 0, false)
	switch {
	case n.labels == 0:
		return "", fmt.Sprintf("its scores could be those of %s and of no object, or, as %s, those of %s (give the labels with --labels FILE, or "+
			"name one of them with --layout)", plural(f.classes, "class"), LayoutDETRSigmoid, plural(f.classes+1, "class"))
	case !agree:
		return "", ""
	}
	return fmt.Sprintf("boxes of queries beside the scores of %s and of no object", plural(f.classes, "class")), ""
}

func (detr) boxMap(*fit) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

func (detr) decode(d *Decoder, dst []postprocess.Finding) ([]postprocess.Finding, error) {
	boxes, logits, classes := d.parts[0].data, d.parts[1].data, d.now.classes
	d.reserve(int(d.now.boxes) * max(1, flag(d.MultiLabel)*classes))
	list, stats := d.candidates[:0], &d.picture.stats
	for query := range int(d.now.boxes) {
		row := logits[query*(classes+1):][:classes+1]
		best := 0
		for class, v := range row[1:classes] {
			if v > row[best] {
				best = class + 1
			}
		}
		// A class that is likelier than the threshold is so much likelier than no object, whatever the others are.
		if row[best]-row[classes] < d.odds {
			continue
		}
		share, ok := softmaxOf(row)
		if !ok {
			stats.Impossible++
			stats.Invalid++
			continue
		}
		b := boxes[4*query:][:4]
		x, y, width, height := b[0]*float32(d.fit.width), b[1]*float32(d.fit.height), b[2]*float32(d.fit.width), b[3]*float32(d.fit.height)
		c := scan.Candidate{Index: int32(query), Box: postprocess.Box{X1: x - width/2, Y1: y - height/2, X2: x + width/2, Y2: y + height/2}}
		first, last := best, best
		if d.MultiLabel {
			first, last = 0, classes-1
		}
		for class := first; class <= last; class++ {
			c.Class, c.Score = int32(class), float32(math.Exp(float64(row[class]))*share)
			number := d.fit.numbers.class(class)
			switch {
			case number < 0 || number >= d.classes || c.Score < d.thresholds[number]:
			case !sane(&c.Box):
				stats.Invalid++
			default:
				list = append(list, c)
			}
		}
	}
	stats.Candidates, d.candidates = len(list), list
	return d.finish(dst), nil
}

// softmaxOf is what the exponent of a logit is multiplied by to be its probability; false when there is none.
func softmaxOf(logits []float32) (share float64, ok bool) {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v))
	}
	return 1 / sum, sum > 0 && sum <= math.MaxFloat64
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// LayoutDETRSigmoid is [B,Q,4] and [B,Q,nc]: as LayoutDETR, but the scores are the sigmoid of logits, and there is no "no object".
const LayoutDETRSigmoid Layout = "detr-sigmoid"

type detrSigmoid struct{}

func (detrSigmoid) describe() Description {
	return Description{
		Layout: LayoutDETRSigmoid, Task: engine.Detect, Form: "[B,Q,4] with [B,Q,nc] before sigmoid",
		Networks: "RT-DETR, Deformable and Conditional DETR, D-FINE of Hugging Face", Gives: boxesWithClasses, Final: true,
		scanned: scan.Form{Logits: true},
	}
}

func (detrSigmoid) reads(n *network) [][]int { return n.queries() }

func (h detrSigmoid) measure(shapes [][]int64) (sizes, error) { return measurePair(h, shapes) }

func (detrSigmoid) number(n *network, f *fit) (numbering, bool) { return n.number(f.classes, 0, false) }

func (detrSigmoid) weigh(n *network, f *fit) (evidence, doubt string) {
	_, agree := n.number(f.classes, 0, false)
	if n.labels == 0 || !agree {
		return "", "" // detr says what is missing
	}
	return fmt.Sprintf("boxes of queries beside the scores of %s and nothing else", plural(f.classes, "class")), ""
}

func (detrSigmoid) boxMap(f *fit) (engine.BoxMap, bool) {
	m, ok := pairMap(f)
	return f.shares(m), ok
}

func (detrSigmoid) decode(d *Decoder, dst []postprocess.Finding) ([]postprocess.Finding, error) {
	return d.dense(dst)
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
