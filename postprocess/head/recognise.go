package head

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

// network is what recognition looks at.
type network struct {
	outputs       []engine.TensorInfo
	width, height int // of the input
	metadata      *engine.Metadata
	labels        int  // 0 when nobody knows
	background    bool // the first of them is none
}

// single lists the outputs one by one, for heads that read one of floating point numbers.
func (n *network) single() [][]int {
	var all [][]int
	for i := range n.outputs {
		if t := n.outputs[i].Type; t == engine.Float32 || t == engine.Float16 {
			all = append(all, []int{i})
		}
	}
	return all
}

// String names outputs with their shapes.
func (n *network) String() string { return n.name(n.numbers()) }

func (n *network) numbers() (all []int) {
	for i := range n.outputs {
		all = append(all, i)
	}
	return all
}

func (n *network) name(outputs []int) string {
	var texts []string
	for _, i := range outputs {
		o := &n.outputs[i]
		text := fmt.Sprintf("%.60s %v", o.Name, o.Shape)
		if o.Type != engine.Float32 {
			text = fmt.Sprintf("%.60s %v %v", o.Name, o.Type, o.Shape)
		}
		texts = append(texts, text)
		if len(texts) == 8 && len(outputs) > 9 {
			texts = append(texts, fmt.Sprintf("%d more", len(outputs)-8))
			break
		}
	}
	return strings.Join(texts, ", ")
}

// called reports whether an output has one of these names, whatever a framework put before or after it: a scope, or the number of the output.
func called(output string, names ...string) bool {
	output, _, _ = strings.Cut(output, ":")
	for _, name := range names {
		if before, found := strings.CutSuffix(output, name); found && (before == "" || strings.ContainsAny(before[len(before)-1:], "_/.")) {
			return true
		}
	}
	return false
}

// shapes are those of some outputs.
func (n *network) shapes(outputs []int) [][]int64 {
	var shapes [][]int64
	for _, i := range outputs {
		shapes = append(shapes, n.outputs[i].Shape)
	}
	return shapes
}

// recognise finds the head of a network, by evidence alone: what only looks like a head is refused with what would make it certain. A
// layout that somebody named is taken at its word where the sizes allow it.
func recognise(n *network, asked Layout) (fit, error) {
	for i := range n.outputs {
		shape := n.outputs[i].Shape
		if slices.ContainsFunc(shape, func(size int64) bool { return size < -1 || size == 0 || size > math.MaxInt32 }) {
			return fit{}, fmt.Errorf("%s has a size that cannot be decoded", n.name([]int{i}))
		}
	}
	if asked != LayoutAuto {
		return named(n, asked)
	}
	if task := n.metadata.Task; task != "" && !slices.ContainsFunc(All(), func(h Description) bool { return h.Task == task }) {
		return fit{}, fmt.Errorf("task %q is not decoded (%s)", string(task), strings.Join(tasks(), " or "))
	}
	var found []fit
	var doubts []string
	for _, h := range heads() {
		if task := n.metadata.Task; task != "" && h.describe().Task != task {
			continue
		}
		for _, outputs := range h.reads(n) {
			s, err := h.measure(n.shapes(outputs))
			if err != nil {
				continue
			}
			f := fit{head: h, sizes: s, outputs: outputs, width: n.width, height: n.height}
			numbers, agree := h.number(n, &f)
			f.numbers = numbers
			evidence, doubt := h.weigh(n, &f)
			switch {
			case evidence != "" && !agree:
				doubts = append(doubts, fmt.Sprintf("%s looks like %s, but %s", n.name(outputs), h.describe().Layout, n.disagreement(&f)))
			case evidence != "":
				f.evidence = n.name(outputs) + ": " + evidence
				found = append(found, f)
			case doubt != "":
				doubts = append(doubts, fmt.Sprintf("%s looks like %s, but %s", n.name(outputs), h.describe().Layout, doubt))
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var names []string
		for i := range found {
			names = append(names, fmt.Sprintf("%s (%s)", found[i].describe().Layout, found[i].evidence))
		}
		return fit{}, fmt.Errorf("the outputs could be %s (name one with --layout)", strings.Join(names, " or "))
	case doubts != nil:
		return fit{}, fmt.Errorf("%s", strings.Join(doubts, "; "))
	}
	return fit{}, fmt.Errorf("outputs %s are of no head that is decoded (if they are of one all the same, name it: --layout %s)", n,
		strings.Join(Layouts()[1:], ", "))
}

func tasks() (all []string) {
	for _, h := range All() {
		if !slices.Contains(all, string(h.Task)) {
			all = append(all, string(h.Task))
		}
	}
	return all
}

// named fits the head that somebody has named to the first outputs that have its form.
func named(n *network, layout Layout) (fit, error) {
	at := slices.IndexFunc(heads(), func(h head) bool { return h.describe().Layout == layout })
	if at < 0 {
		return fit{}, fmt.Errorf("layout %q is not known (%s)", string(layout), strings.Join(Layouts(), ", "))
	}
	h := heads()[at]
	for _, outputs := range h.reads(n) {
		s, err := h.measure(n.shapes(outputs))
		if err != nil {
			continue
		}
		f := fit{head: h, sizes: s, outputs: outputs, width: n.width, height: n.height, evidence: n.name(outputs) + ": the layout was named"}
		agree := true
		if f.numbers, agree = h.number(n, &f); !agree {
			return fit{}, fmt.Errorf("%s read as %s has %s but the model names %s "+
				"(give the labels that belong to it with --labels, or another --layout)",
				n.name(outputs), layout, plural(s.classes, "class"), plural(n.labels, "label"))
		}
		return f, nil
	}
	return fit{}, fmt.Errorf("outputs %s: none is %s, which needs %s", n, layout, h.describe().Form)
}

// disagreement says that a head scores other classes than there are labels.
func (n *network) disagreement(f *fit) string {
	return fmt.Sprintf("it has %s and the model names %s (give the labels that belong to it with --labels FILE)",
		plural(f.classes, "class"), plural(n.labels, "label"))
}

// plural counts things.
func plural(count int, what string) string {
	switch {
	case count == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s") || strings.HasSuffix(what, "x"):
		return fmt.Sprintf("%d %ses", count, what)
	}
	return fmt.Sprintf("%d %ss", count, what)
}
