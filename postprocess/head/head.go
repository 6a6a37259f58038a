// Package head decodes the outputs of neural networks into detections in pixels of the source image. A head is a family of networks whose
// outputs have the same layout. Each has one file: the layout, how it is recognised and why, where its boxes and scores lie for an engine's
// candidate filter, and its decoder with the memory that it needs. The function heads lists them all.
package head

import (
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/spelling"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// Layout is the name of a head in settings.
type Layout string

// LayoutAuto selects the head by the model's outputs and metadata.
const LayoutAuto Layout = ""

// Description describes a head. In Form B is the batch, N the number of boxes and nc the number of classes.
type Description struct {
	Layout   Layout      `json:"layout"`
	Task     engine.Task `json:"task"`
	Form     string      `json:"form"`     // shapes of the outputs
	Networks string      `json:"networks"` // with this head
	Gives    string      `json:"gives"`    // what is published
	// Preset is the preprocessing of these networks where neither the file nor a setting specifies one; see engine.Presets. It is empty
	// where they differ, or use Ultralytics' letterbox.
	Preset string `json:"preset,omitempty"`
	// Unspecified names what the file must specify of its preprocessing, because networks with this head differ in it and a wrong guess
	// would go unnoticed. It is empty where a default is safe.
	Unspecified string `json:"-"`
	// NMSFree is set where overlapping boxes are different objects: nothing is suppressed.
	NMSFree bool `json:"-"`
	// ScanFormat is the format of scores and boxes in a box map.
	ScanFormat scan.Format `json:"-"`
	// Unbatched is set where outputs belong to a single image: their first dimension is no batch.
	Unbatched bool `json:"-"`
}

// head is a family of networks. A new one needs a file like yolov8.go, a line in heads, tensors in the tests of this package, and its
// networks in the corpus of package predict.
type head interface {
	describe() Description
	// findOutputs lists the outputs that the head could read: each entry holds their indices in the order that measure expects.
	findOutputs(n *network) [][]int
	// measure returns the sizes for the shapes of these outputs, batch first, -1 for a dynamic size. The error describes the required shapes.
	measure(shapes [][]int64) (sizes, error)
	// recognise returns the evidence that the outputs belong to this head, or why outputs of its form may belong to another one. Both are
	// empty for outputs of another form.
	recognise(n *network, m *match) (evidence, doubt string)
	// boxMap returns the positions of boxes and scores. It returns false for a head without a box and scores per anchor, and while a size is
	// unknown.
	boxMap(m *match) (engine.BoxMap, bool)
	// numbering returns how the network numbers its classes; false when the labels do not fit.
	numbering(n *network, m *match) (numbering, bool)
	// newDecoder returns a decoder with its own scratch memory.
	newDecoder(s *settings) decoder
}

// decoder decodes the outputs of one head. It is used by one goroutine at a time.
type decoder interface {
	// decode appends the detections of an image to dst, best first.
	decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error)
}

// heads lists all heads in the order of help and documentation.
func heads() []head {
	return []head{
		yolov5{},
		yolov6{},
		yolov7NMS{},
		yolov8{},
		yolov8Rows{},
		endToEnd{},
		deepStreamYOLO{},
		pose{},
		pose{columnsOrRows: columnsOrRows{rows: true}},
		segment{},
		segment{columnsOrRows: columnsOrRows{rows: true}},
		obb{},
		obb{columnsOrRows: columnsOrRows{rows: true}},
		yolox{},
		yoloNAS{},
		yoloMaps{},
		yolov5Maps{},
		yolov5Maps{seven: true},
		scrfd{},
		yunet{},
		nanodet{},
		picodet{},
		ppYOLOE{},
		paddleNMS{},
		centerNet{},
		moveNet{},
		moveNet{multiple: true},
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
		ctc{blankLast: true},
		embedding{},
		semantic{},
		depth{},
	}
}

// configurable is a head whose sizes depend on the model's metadata.
type configurable interface {
	configure(n *network) head
}

// detailed is a head with more numbers for each box than coordinates and scores.
type detailed interface {
	extra(m *match) engine.Numbers
}

// keypointed is a head whose objects have keypoints.
type keypointed interface {
	// keypoints returns their number, and their names by class where they are known; a single list is for all classes.
	keypoints(m *match) (count int, names [][]string)
}

// sizes are the sizes of a head in one model.
type sizes struct {
	boxes   int64 // -1 while it is open
	classes int   // that are scored; 0 while it is open, and where the network gives class numbers
	extra   int   // numbers for each box besides coordinates and scores
}

// match is a head matched to a model.
type match struct {
	head head
	sizes
	numbers       numbering
	outputs       []int // indices of the outputs that it reads
	width, height int   // of the network's input
	evidence      string
}

func (m *match) describe() Description { return m.head.describe() }

// noBoxMap is embedded by heads without a box and scores for each anchor.
type noBoxMap struct{}

func (noBoxMap) boxMap(*match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

// ownNumbers is embedded by heads without class numbers, or with those of the labels.
type ownNumbers struct{}

func (ownNumbers) numbering(*network, *match) (numbering, bool) { return numbering{}, true }

// scoredLabels is embedded by heads that score the classes of the labels and nothing else.
type scoredLabels struct{}

func (scoredLabels) numbering(n *network, m *match) (numbering, bool) {
	if m.classes == 0 { // class numbers, or not known yet
		return numbering{}, true
	}
	return n.numbering(m.classes, 0, false)
}

// All lists the heads that can be decoded. Settings, help and documentation take their names from here.
func All() []Description {
	var all []Description
	for _, h := range heads() {
		all = append(all, h.describe())
	}
	return all
}

// Layouts lists the names that ParseLayout accepts.
func Layouts() []string {
	names := []string{"auto"}
	for _, h := range All() {
		names = append(names, string(h.Layout))
	}
	return names
}

// ParseLayout parses the name of a layout; "auto" and "" select recognition.
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
	return LayoutAuto, unknownLayout(name)
}

// unknownLayout is the error for a name that is none of a layout, with the nearest ones.
func unknownLayout(name string) error {
	near := spelling.Near(strings.ToLower(name), Layouts(), 3)
	if near == nil {
		return fmt.Errorf("layout %.40q is not known (%s)", name, layoutsHint)
	}
	return fmt.Errorf("layout %.40q is not known, did you mean %s? (%s)", name, strings.Join(near, " or "), layoutsHint)
}

// mismatch is the error for outputs that do not have a head's form.
func mismatch(h head, shapes [][]int64) error {
	about := h.describe()
	return fmt.Errorf("layout %s needs %s, not %v", about.Layout, about.Form, shapes)
}
