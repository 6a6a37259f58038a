// Package head knows the outputs of networks: which head they are of, and why, and where in them boxes, scores and class numbers lie. Each
// head has a file of its own that says how it looks and how it is recognised; All lists them. Package decode reads the numbers.
package head

import (
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// Layout is the name of a head as settings give it.
type Layout string

// LayoutAuto has the head recognised by what the outputs and the metadata say.
const LayoutAuto Layout = ""

// Description is of a family of networks by what they put out. In Form B is the batch, N the number of boxes and nc that of classes.
type Description struct {
	Layout   Layout      `json:"layout"`
	Task     engine.Task `json:"task"`
	Form     string      `json:"form"`
	Networks string      `json:"networks"` // that have it
	Gives    string      `json:"gives"`    // what is published of it
	// Preset is how such networks take their images, one of engine.Presets: what holds where neither the file nor a setting says. Empty
	// where they differ, or take Ultralytics' letterbox.
	Preset string `json:"preset,omitempty"`
	// NMSFree says that boxes that overlap are different objects: nothing is suppressed.
	NMSFree bool `json:"-"`
	// ScanFormat is the form of the scores and boxes in a map.
	ScanFormat scan.Format `json:"-"`
	// Unbatched says that outputs are those of one image: their first dimension is no batch.
	Unbatched bool `json:"-"`
}

// head is a family of networks. A new one is a file like yolov8.go, a line in heads, a way of decoding it in package decode where there is
// none yet, its tensors in the tests of that, and its networks in the corpus of package predict.
type head interface {
	describe() Description
	// reads lists what could be the outputs that it reads: in each entry their numbers, in the order in which measure wants them.
	reads(n *network) [][]int
	// measure takes the sizes from the shapes of these outputs, the batch first, -1 where a size is open. The error says what it needs.
	measure(shapes [][]int64) (Sizes, error)
	// weigh says what makes the outputs certainly of this head, or what they look like and why that is not certain. With both empty they are
	// of another one.
	weigh(n *network, f *Match) (evidence, doubt string)
	// boxMap says where boxes and scores are. It reports false for a head without a box and scores for each anchor, which the host decodes
	// whole, and while a size is open.
	boxMap(f *Match) (engine.BoxMap, bool)
	// number says how the network numbers its classes; false when the labels do not fit.
	number(n *network, f *Match) (Numbering, bool)
}

// heads lists all, in the order in which people are told of them.
func heads() []head {
	return []head{
		yolov5{},
		yolov6{},
		yolov8{},
		endToEnd{},
		pose{},
		pose{ended: true},
		segment{},
		segment{ended: true},
		obb{},
		obb{ended: true},
		yolox{},
		yoloNAS{},
		nanodet{},
		picodet{},
		ultralyticsRTDETR{},
		ultralyticsRTDETREnd2End{},
		ssd{},
		rtdetr{},
		rfdetr{},
		rfdetrSegment{},
		detr{},
		detrSigmoid{},
		nms{},
		tfDetection{},
		torchvision{},
		classify{},
		ctc{},
		ctc{last: true},
		embedding{},
		semantic{},
		depth{},
	}
}

// adapting is a head that measures by what the file says of itself.
type adapting interface {
	adapt(n *network) head
}

// Sizes are what one model gives a head.
type Sizes struct {
	Boxes   int64 // -1 while it is open
	Classes int   // that are scored; 0 while it is not known, and where classes come by number
	Extra   int   // numbers of a box beside coordinates and scores
}

// Match is a head as a model has it.
type Match struct {
	head head
	Sizes
	Numbering     Numbering
	Outputs       []int // that it reads
	Width, Height int   // of the network's input
	Evidence      string
}

// Describe says which head it is.
func (f *Match) Describe() Description { return f.head.describe() }

// Measure takes the sizes from the shapes of a result's outputs.
func (f *Match) Measure(shapes [][]int64) (Sizes, error) { return f.head.measure(shapes) }

// BoxMap says where boxes and scores are; false for a head that has no box and scores for each anchor, and while a size is open.
func (f *Match) BoxMap() (engine.BoxMap, bool) { return f.head.boxMap(f) }

// All lists the heads that are decoded. Names in settings, help and documents come from here.
func All() []Description {
	var all []Description
	for _, h := range heads() {
		all = append(all, h.describe())
	}
	return all
}

// Layouts lists the names that ParseLayout reads.
func Layouts() []string {
	names := []string{"auto"}
	for _, h := range All() {
		names = append(names, string(h.Layout))
	}
	return names
}

// ParseLayout reads a layout's name as a user gives it; "auto" and "" ask for recognition.
func ParseLayout(name string) (Layout, error) {
	lower := strings.ToLower(name)
	if lower == "" || lower == "auto" {
		return LayoutAuto, nil
	}
	for _, h := range All() {
		if lower == string(h.Layout) {
			return h.Layout, nil
		}
	}
	return LayoutAuto, fmt.Errorf("layout %q is not known (%s)", name, strings.Join(Layouts(), ", "))
}

// misfit says that outputs do not have a head's form.
func misfit(h head, shapes [][]int64) error {
	about := h.describe()
	return fmt.Errorf("%v is not %s, which needs %s", shapes, about.Layout, about.Form)
}
