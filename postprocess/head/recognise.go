package head

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

// ErrLayout matches errors for models whose head is not certain, or whose outputs do not have the selected layout.
var ErrLayout = errors.New("unsupported output layout")

// layoutError is an ErrLayout with a text of its own.
type layoutError struct{ error }

func (layoutError) Is(target error) bool { return target == ErrLayout }
func (e layoutError) Unwrap() error      { return e.error }

// Recognition describes what a model's outputs were recognised as.
type Recognition struct {
	Description
	// Outputs are the indices of the outputs that are read, Boxes and Classes their sizes for each image: 0 while a size is open.
	Outputs []int `json:"outputs"`
	Boxes   int   `json:"boxes,omitempty"`
	Classes int   `json:"classes,omitempty"`
	// KeypointCount is the number of keypoints of an object, Keypoints their names by class where they are known; a single list is for all
	// classes.
	KeypointCount int        `json:"points,omitempty"`
	Keypoints     [][]string `json:"keypoints,omitempty"`
	// Evidence is the reason for the decision.
	Evidence string `json:"evidence"`
}

// String returns the layout and the evidence.
func (r Recognition) String() string { return string(r.Layout) + ": " + r.Evidence }

// KeypointNames returns the names of the keypoints of all classes, each once.
func (r Recognition) KeypointNames() (all []string) {
	for _, names := range r.Keypoints {
		for _, name := range names {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// recognition describes the match of a model with that many classes.
func (m *match) recognition(classes int) Recognition {
	r := Recognition{
		Description: m.describe(), Outputs: m.outputs, Boxes: int(max(m.boxes, 0)), Classes: classes, Evidence: m.evidence,
	}
	if h, ok := m.head.(keypointed); ok {
		r.KeypointCount, r.Keypoints = h.keypoints(m)
	}
	return r
}

// Recognise returns the head of a model, or matches it to the selected layout. An ErrLayout names what would make an unclear head certain.
func Recognise(model *engine.Model, layout Layout) (Recognition, error) {
	m, err := recognise(model, layout)
	if err != nil {
		return Recognition{}, err
	}
	return m.recognition(m.classes), nil
}

// backgrounds are the names of class 0 in label files that mean no object.
var backgrounds = [...]string{"background", "__background__", "n/a", "__bg__", "unlabeled", "???"}

func recognise(model *engine.Model, layout Layout) (match, error) {
	n := &network{
		outputs: model.Outputs, width: model.Width, height: model.Height, metadata: &model.Metadata, labels: len(model.Metadata.Labels),
	}
	n.coco = areCOCO(model.Metadata.Labels)
	if n.labels > 0 {
		n.background = slices.Contains(backgrounds[:], strings.ToLower(model.Metadata.Labels[0]))
	}
	switch {
	case len(n.outputs) == 0:
		return match{}, layoutError{errors.New("the model has no output")}
	case model.NoImage != nil:
		return match{}, layoutError{fmt.Errorf("the model takes no images: %w (infer --input runs it on arrays)", model.NoImage)}
	case model.Width < 1 || model.Height < 1:
		return match{}, layoutError{errors.New("the size of the model's image input is not known")}
	}
	found, err := n.recognise(layout)
	if err != nil {
		return match{}, layoutError{err}
	}
	if what := found.describe().Unspecified; what != "" && model.Image != nil && model.Image.Assumed {
		return match{}, layoutError{engine.UnknownPreprocess(what)}
	}
	return found, nil
}

// network is a model as recognition sees it.
type network struct {
	outputs       []engine.TensorInfo
	width, height int // of the input
	metadata      *engine.Metadata
	labels        int  // 0 when their number is not known
	background    bool // the first label is no class
	coco          bool // the labels are COCO's 80
}

// floats lists the floating point outputs one by one, for heads that read one of them.
func (n *network) floats() [][]int {
	var all [][]int
	for i := range n.outputs {
		if t := n.outputs[i].Type; t == engine.Float32 || t == engine.Float16 {
			all = append(all, []int{i})
		}
	}
	return all
}

// isInteger reports whether an output holds integers.
func (n *network) isInteger(output int) bool {
	t := n.outputs[output].Type
	return t == engine.Int32 || t == engine.Int64
}

// heads lists all heads, configured for this network.
func (n *network) heads() []head {
	all := heads()
	for i := range all {
		if h, ok := all[i].(configurable); ok {
			all[i] = h.configure(n)
		}
	}
	return all
}

// all lists the indices of the outputs.
func (n *network) all() []int {
	all := make([]int, len(n.outputs))
	for i := range all {
		all[i] = i
	}
	return all
}

// list lists outputs with their shapes.
func (n *network) list(outputs []int) string {
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

// hasName reports whether an output has one of these names, ignoring a scope before it or an index after it.
func hasName(output string, names ...string) bool {
	output, _, _ = strings.Cut(output, ":")
	for _, name := range names {
		before, found := strings.CutSuffix(output, name)
		if found && (before == "" || strings.ContainsAny(before[len(before)-1:], "_/.")) {
			return true
		}
	}
	return false
}

// named finds one output for each list of possible names; nil when one is missing.
func (n *network) named(names ...[]string) []int {
	var all []int
	for _, possible := range names {
		at := slices.IndexFunc(n.outputs, func(o engine.TensorInfo) bool { return hasName(o.Name, possible...) })
		if at < 0 || slices.Contains(all, at) {
			return nil
		}
		all = append(all, at)
	}
	return all
}

// shapes returns the shapes of some outputs.
func (n *network) shapes(outputs []int) [][]int64 {
	var shapes [][]int64
	for _, i := range outputs {
		shapes = append(shapes, n.outputs[i].Shape)
	}
	return shapes
}

// recognise returns the head of the network, by evidence alone: outputs that only look like a head are refused with what would make it
// certain. A selected layout is accepted where the sizes allow it.
func (n *network) recognise(layout Layout) (match, error) {
	for i := range n.outputs {
		shape := n.outputs[i].Shape
		if slices.ContainsFunc(shape, func(size int64) bool { return size < -1 || size == 0 || size > math.MaxInt32 }) {
			return match{}, fmt.Errorf("%s has a size that cannot be decoded", n.list([]int{i}))
		}
	}
	if layout != LayoutAuto {
		return n.selected(layout)
	}
	if task := n.metadata.Task; task != "" && !slices.ContainsFunc(All(), func(h Description) bool { return h.Task == task }) {
		return match{}, fmt.Errorf("task %q is not decoded (%s)", string(task), strings.Join(tasks(), " or "))
	}
	var found []match
	var doubts []string     // that of the first head is enough
	var unlabelled []string // heads that only labels tell apart, with their classes
	for _, h := range n.heads() {
		if task := n.metadata.Task; task != "" && h.describe().Task != task {
			continue
		}
		for _, outputs := range h.findOutputs(n) {
			m, doubt := n.try(h, outputs)
			switch {
			case doubt == missingLabels(m.classes):
				unlabelled = append(unlabelled, fmt.Sprintf("%s of %s", h.describe().Layout, plural(m.classes, "class")))
				fallthrough
			case doubt != "":
				doubts = append(doubts, n.refusal(outputs, fmt.Sprintf(" looks like %s, but %s", h.describe().Layout, doubt)))
			case m.evidence != "":
				found = append(found, m)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return match{}, fmt.Errorf("the outputs could be %s or %s (select one with --layout)", found[0].describe().Layout,
			found[1].describe().Layout)
	case len(unlabelled) > 1 && len(unlabelled) == len(doubts):
		last := len(unlabelled) - 1
		return match{}, errors.New(n.refusal(n.all(), " could be "+strings.Join(unlabelled[:last], ", ")+" or "+unlabelled[last]+
			" (give the labels with --labels FILE)"))
	case doubts != nil:
		return match{}, errors.New(doubts[0])
	case n.rawScales():
		return match{}, errors.New(n.refusal(n.all(),
			" are a detector's maps before they are decoded (export it with its decoding: YOLOv7 with --grid)"))
	}
	return match{}, errors.New(n.refusal(n.all(), " match no supported layout ("+layoutsHint+")"))
}

// layoutsHint is the way on where nothing is near.
const layoutsHint = "edge-infer model layouts lists them"

// maxRefusal is the length of a refusal.
const maxRefusal = 200

// refusal returns a text about some outputs. Outputs that do not fit into its length are counted.
func (n *network) refusal(outputs []int, text string) string {
	list := n.list(outputs)
	for shown := min(len(outputs), 3); len(list)+len(text) > maxRefusal && shown > 0; shown-- {
		list = n.list(outputs[:shown])
		if more := len(outputs) - shown; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
	}
	for i := range list {
		if i >= 24 && len(list)+len(text) > maxRefusal { // one output with a long name
			list = list[:i] + "..."
			break
		}
	}
	return list + text
}

// try matches a head to outputs. The match has evidence if they belong to it, else there may be a doubt.
func (n *network) try(h head, outputs []int) (m match, doubt string) {
	measured, err := h.measure(n.shapes(outputs))
	if err != nil {
		return match{}, ""
	}
	m = match{head: h, sizes: measured, outputs: outputs, width: n.width, height: n.height}
	numbers, agree := h.numbering(n, &m)
	m.numbers = numbers
	evidence, doubt := h.recognise(n, &m)
	switch {
	case evidence == "":
		return m, doubt
	case !agree:
		return match{}, fmt.Sprintf("it has %s and the model has %s (give the labels that belong to it with --labels FILE)",
			plural(m.classes, "class"), plural(n.labels, "label"))
	}
	m.evidence = n.list(outputs) + ": " + evidence
	return m, ""
}

// rawScales reports whether the outputs are the maps of a detector's scales before decoding.
func (n *network) rawScales() bool {
	for i := range n.outputs {
		shape := n.outputs[i].Shape
		if len(shape) == 5 { // boxes of a cell, and last the numbers of each
			shape = shape[:4]
		}
		if len(shape) != 4 || !n.isScale(shape[2], shape[3]) {
			return false
		}
	}
	return len(n.outputs) > 1
}

func tasks() (all []string) {
	for _, h := range All() {
		if !slices.Contains(all, string(h.Task)) {
			all = append(all, string(h.Task))
		}
	}
	return all
}

// selected matches a selected layout to the first outputs that have its form.
func (n *network) selected(layout Layout) (match, error) {
	all := n.heads()
	at := slices.IndexFunc(all, func(h head) bool { return h.describe().Layout == layout })
	if at < 0 {
		return match{}, unknownLayout(string(layout))
	}
	h := all[at]
	for _, outputs := range h.findOutputs(n) {
		measured, err := h.measure(n.shapes(outputs))
		if err != nil {
			continue
		}
		m := match{
			head: h, sizes: measured, outputs: outputs, width: n.width, height: n.height, evidence: n.list(outputs) + ": the layout was selected",
		}
		numbers, agree := h.numbering(n, &m)
		if !agree {
			return match{}, errors.New(n.refusal(outputs, fmt.Sprintf(" read as %s has %s but the model has %s "+
				"(give the labels that belong to it with --labels)", layout, plural(measured.classes, "class"), plural(n.labels, "label"))))
		}
		m.numbers = numbers
		return m, nil
	}
	return match{}, errors.New(n.refusal(n.all(),
		fmt.Sprintf(" are not what layout %s needs, %s (%s)", layout, h.describe().Form, layoutsHint)))
}

// plural returns a count with its noun.
func plural(count int, noun string) string {
	switch {
	case count == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x"):
		return fmt.Sprintf("%d %ses", count, noun)
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
