package head

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

// ErrLayout is what errors.Is finds in an error of Recognise: nothing is certain about the model's outputs, or they are not as somebody has
// said.
var ErrLayout = errors.New("unsupported output layout")

// layoutError is ErrLayout in the words of its own alone.
type layoutError struct{ error }

func (layoutError) Is(target error) bool { return target == ErrLayout }
func (e layoutError) Unwrap() error      { return e.error }

// Recognition says what a network's outputs were recognised as.
type Recognition struct {
	Description
	// Outputs are the numbers of those that are read, Boxes and Classes what they hold for each image: 0 while it is open.
	Outputs []int `json:"outputs"`
	Boxes   int   `json:"boxes,omitempty"`
	Classes int   `json:"classes,omitempty"`
	// KeypointCount is how many keypoints an object has, and Keypoints their names by class, where they are known; one list is for all classes.
	KeypointCount int        `json:"points,omitempty"`
	Keypoints     [][]string `json:"keypoints,omitempty"`
	// Evidence says what makes that certain.
	Evidence string `json:"evidence"`
}

// String says what the outputs are and why.
func (r Recognition) String() string { return string(r.Layout) + ": " + r.Evidence }

// KeypointNames are the names of keypoints of any class, each once.
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

// backgrounds are what label files call class 0 where it is none.
var backgrounds = [...]string{"background", "__background__", "n/a", "__bg__", "unlabeled", "???"}

// unsaidCrop is what a classifier that says nothing of its images lacks: a letterboxed one would be wrong in silence.
const unsaidCrop = "how a classifier's images are cropped and scaled"

// unsaidScale is what DETRs that say nothing lack: they are too many, with the same outputs.
const unsaidScale = "how the images of " + string(LayoutDETRSigmoid) + " are scaled, which its networks differ in"

// unsaidLine is what readers of text lack that say nothing of their images.
const unsaidLine = "how a text reader's images are scaled"

// unsaidEmbedding is what networks that embed lack that say nothing of their images.
const unsaidEmbedding = "how the images of a network that embeds are scaled"

// unsaidDepth is what networks for depth that say nothing lack: Depth Anything and MiDaS take images as imagenet has them, DPT as keras.
const unsaidDepth = "how the images of " + string(LayoutDepth) + " are scaled, which its networks differ in"

// Recognise finds the head of a model, or fits the one that is asked for by name. An error that is ErrLayout says what would settle it.
func Recognise(model *engine.Model, asked Layout) (Match, error) {
	n := &network{
		outputs: model.Outputs, width: model.Width, height: model.Height, metadata: &model.Metadata, labels: len(model.Metadata.Labels),
	}
	if n.labels > 0 {
		n.background = slices.Contains(backgrounds[:], strings.ToLower(model.Metadata.Labels[0]))
	}
	switch {
	case len(n.outputs) == 0:
		return Match{}, layoutError{errors.New("the model has no output")}
	case model.NoImage != nil:
		return Match{}, layoutError{fmt.Errorf("the model takes no images: %w (infer --input runs it on arrays)", model.NoImage)}
	case model.Width < 1 || model.Height < 1:
		return Match{}, layoutError{errors.New("the size of the images that the model takes is not known")}
	}
	found, err := n.recognise(asked)
	if err != nil {
		return Match{}, layoutError{err}
	}
	if model.Image != nil && model.Image.Assumed {
		switch found.Describe().Layout {
		case LayoutClassify:
			return Match{}, layoutError{engine.UnsaidPreprocess(unsaidCrop)}
		case LayoutDETRSigmoid:
			return Match{}, layoutError{engine.UnsaidPreprocess(unsaidScale)}
		case LayoutCTC, LayoutCTCBlankLast:
			return Match{}, layoutError{engine.UnsaidPreprocess(unsaidLine)}
		case LayoutEmbedding:
			return Match{}, layoutError{engine.UnsaidPreprocess(unsaidEmbedding)}
		case LayoutDepth:
			return Match{}, layoutError{engine.UnsaidPreprocess(unsaidDepth)}
		}
	}
	return found, nil
}

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

// heads lists all as they are for this network.
func (n *network) heads() []head {
	all := heads()
	for i := range all {
		if h, ok := all[i].(adapting); ok {
			all[i] = h.adapt(n)
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

// called reports whether an output has one of these names, whatever a framework put before or after it: a scope, or the number of the
// output.
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
func (n *network) recognise(asked Layout) (Match, error) {
	for i := range n.outputs {
		shape := n.outputs[i].Shape
		if slices.ContainsFunc(shape, func(size int64) bool { return size < -1 || size == 0 || size > math.MaxInt32 }) {
			return Match{}, fmt.Errorf("%s has a size that cannot be decoded", n.name([]int{i}))
		}
	}
	if asked != LayoutAuto {
		return named(n, asked)
	}
	if task := n.metadata.Task; task != "" && !slices.ContainsFunc(All(), func(h Description) bool { return h.Task == task }) {
		return Match{}, fmt.Errorf("task %q is not decoded (%s)", string(task), strings.Join(tasks(), " or "))
	}
	var found []Match
	var doubts []string
	for _, h := range n.heads() {
		if task := n.metadata.Task; task != "" && h.describe().Task != task {
			continue
		}
		for _, outputs := range h.reads(n) {
			s, err := h.measure(n.shapes(outputs))
			if err != nil {
				continue
			}
			f := Match{head: h, Sizes: s, Outputs: outputs, Width: n.width, Height: n.height}
			numbers, agree := h.number(n, &f)
			f.Numbering = numbers
			evidence, doubt := h.weigh(n, &f)
			switch {
			case evidence != "" && !agree:
				doubts = append(doubts, fmt.Sprintf("%s looks like %s, but %s", n.name(outputs), h.describe().Layout, n.disagreement(&f)))
			case evidence != "":
				f.Evidence = n.name(outputs) + ": " + evidence
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
			names = append(names, fmt.Sprintf("%s (%s)", found[i].Describe().Layout, found[i].Evidence))
		}
		return Match{}, fmt.Errorf("the outputs could be %s (name one with --layout)", strings.Join(names, " or "))
	case doubts != nil:
		return Match{}, fmt.Errorf("%s", strings.Join(doubts, "; "))
	case n.undecoded():
		return Match{}, fmt.Errorf("outputs %s are a detector's maps, one for each scale, before they are decoded "+
			"(export it with its decoding: YOLOv7 with --grid, others without what keeps it out of the file)", n)
	}
	return Match{}, fmt.Errorf("outputs %s are of no head that is decoded (if they are of one all the same, name it: --layout %s)", n,
		strings.Join(Layouts()[1:], ", "))
}

// undecoded reports whether all outputs are maps on scales of the network.
func (n *network) undecoded() bool {
	for i := range n.outputs {
		shape := n.outputs[i].Shape
		if len(shape) == 5 { // boxes of a cell, and last the numbers of each
			shape = shape[:4]
		}
		if len(shape) != 4 || !n.scale(shape[2], shape[3]) {
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

// named fits the head that somebody has named to the first outputs that have its form.
func named(n *network, layout Layout) (Match, error) {
	at := slices.IndexFunc(heads(), func(h head) bool { return h.describe().Layout == layout })
	if at < 0 {
		return Match{}, fmt.Errorf("layout %q is not known (%s)", string(layout), strings.Join(Layouts(), ", "))
	}
	h := n.heads()[at]
	for _, outputs := range h.reads(n) {
		s, err := h.measure(n.shapes(outputs))
		if err != nil {
			continue
		}
		f := Match{head: h, Sizes: s, Outputs: outputs, Width: n.width, Height: n.height, Evidence: n.name(outputs) + ": the layout was named"}
		agree := true
		if f.Numbering, agree = h.number(n, &f); !agree {
			return Match{}, fmt.Errorf("%s read as %s has %s but the model names %s "+
				"(give the labels that belong to it with --labels, or another --layout)",
				n.name(outputs), layout, Plural(s.Classes, "class"), Plural(n.labels, "label"))
		}
		return f, nil
	}
	return Match{}, fmt.Errorf("outputs %s: none is %s, which needs %s", n, layout, h.describe().Form)
}

// disagreement says that a head scores other classes than there are labels.
func (n *network) disagreement(f *Match) string {
	return fmt.Sprintf("it has %s and the model names %s (give the labels that belong to it with --labels FILE)",
		Plural(f.Classes, "class"), Plural(n.labels, "label"))
}

// Plural counts things.
func Plural(count int, what string) string {
	switch {
	case count == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s") || strings.HasSuffix(what, "x"):
		return fmt.Sprintf("%d %ses", count, what)
	}
	return fmt.Sprintf("%d %ss", count, what)
}
