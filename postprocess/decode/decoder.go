// Package decode turns the numbers a network gives into detections on the source image: thresholds, class numbers, non-maximum suppression
// and coordinates. Which head the outputs are of, and where in them what lies, package head says. No camera and no backend is known here,
// only what package engine says of a model and its results.
package decode

import (
	"errors"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// What Open puts where a Decoder's field is zero; DefaultReported is the threshold's.
const (
	DefaultIoU           = 0.45
	DefaultMaxCandidates = 30000
	DefaultLimit         = 300
	DefaultTopK          = 5
)

// ErrOutput is what errors.Is finds in an error of Decode: the numbers do not fit the layout.
var ErrOutput = errors.New("bad network output")

// Decoder turns one image's part of a network's output into detections.
//
// A box gives one detection, with its best class (argmax), and only when that class is wanted and its score reaches the class's threshold;
// MultiLabel gives one for every class over its threshold instead. Suppression compares boxes of the same class. Boxes that are NaN,
// infinite, empty or outside the image are skipped and counted, never returned.
//
// Set the fields, call Open once, then Decode from one goroutine at a time: the scratch memory inside belongs to the call. Once the scratch
// has grown to the model's size, decoding allocates nothing but what dst lacks.
type Decoder struct {
	// Layout names the head instead of having it recognised.
	Layout head.Layout
	// Threshold is the decoded threshold, the lowest score returned: 0 for DefaultReported, or for none in a classification. ClassThresholds
	// overrides it by class.
	MinScore       float32
	ClassMinScores map[int]float32
	// IoU is the overlap above which the lower-scored box is suppressed, 0 for DefaultIoU.
	IoU float32
	// Classes are the classes returned; nil for all.
	Classes []int
	// Agnostic lets boxes of different classes suppress each other.
	Agnostic bool
	// MultiLabel gives a box once for every class over the threshold.
	MultiLabel bool
	// MaxCandidates is how many of the best boxes suppression looks at, Limit how many detections are returned.
	MaxCandidates, Limit int
	// TopK is how many classes a classification returns whose classes exclude each other. TopAlways returns them whatever they score.
	TopK      int
	TopAlways bool

	// Set by Open.
	fit        head.Match
	about      head.Description
	layout     head.Layout
	activation engine.Activation       // of a classifier
	skeletons  []*postprocess.Skeleton // by class, or one for all; nil where names are not known
	pointNames [][]string
	detailed   bool      // boxes have numbers beside coordinates and scores
	columns    int       // that are scored; 0 while nobody knows, and where classes come by number
	classes    int       // of the labels; 0 while nobody knows
	odds       float32   // logarithm of what the lowest threshold is to 1
	thresholds []float32 // the lowest score at which a class is returned, by class: infinity for one that is not wanted

	// Decode goroutine only.
	img        img
	now        head.Match // with the image's own sizes
	shapes     [][]int64
	parts      []part
	scan       scan.Scanner
	byLabel    [postprocess.NoClass + 1]uint8 // class number of the labels by that of the network, in a map
	asLabels   bool                           // byLabel changes no number that a map may hold
	cropped    image.Rectangle                // cells of a map that lie in the image
	queries    []scan.Query
	candidates []scan.Candidate
	keys       []uint64
	kept       suppressor
	turned     turnedSuppressor
	origins    []int32   // of the detections of finish: their boxes in the map
	details    []details // by image of a request
}

// part is an image's part of an output that the head reads.
type part struct {
	data    []float32
	widened []float32 // memory for what comes as binary16
	raw     []byte    // as the engine gives it
	kind    engine.DataType
}

// image is what is known of the image that is decoded.
type img struct {
	transform     engine.Transform
	width, height int
	stats         Stats
	details       *details // nil where only scores are looked at
}

// Open recognises the head of a model and fits the decoder to it. An error that is ErrLayout says what would settle it.
func (d *Decoder) Open(model *engine.Model) error {
	if err := d.check(); err != nil {
		return fmt.Errorf("open decoder: %w", err)
	}
	found, err := head.Recognise(model, d.Layout)
	if err != nil {
		return err
	}
	d.fit, d.about, d.layout = found, found.Describe(), found.Describe().Layout
	d.activation = model.Metadata.Activation
	_, d.detailed = found.ExtraNumbers()
	d.name(found.KeypointNames(&model.Metadata))
	d.shapes, d.parts = make([][]int64, len(found.Outputs)), make([]part, len(found.Outputs))
	if err := d.prepare(found.Classes, len(model.Metadata.Labels)); err != nil {
		return fmt.Errorf("open decoder: %w", err)
	}
	if err := d.checkFilter(model.Filter); err != nil {
		return fmt.Errorf("open decoder: %w", err)
	}
	return nil
}

// Recognised says what Open has recognised.
func (d *Decoder) Recognised() head.Recognition {
	points, _ := d.fit.Keypoints()
	return head.Recognition{
		KeypointCount: points, Keypoints: d.pointNames,
		Description: d.about, Outputs: d.fit.Outputs, Boxes: int(max(d.fit.Boxes, 0)), Classes: d.classes, Evidence: d.fit.Evidence,
	}
}

// Filter says what an engine may list on its device for this decoder; nil when the outputs must come whole.
func (d *Decoder) Filter() *engine.Filter {
	m, ok := d.fit.BoxMap()
	if !ok || d.detailed || d.MultiLabel || d.about.ScanFormat.Logits || d.about.ScanFormat.Raw {
		return nil
	}
	f := &engine.Filter{BoxMap: m, Threshold: d.MinScore}
	for _, threshold := range d.ClassMinScores {
		f.Threshold = min(f.Threshold, threshold)
	}
	return f
}

// checkFilter compares what the engine lists with what the decoder needs.
func (d *Decoder) checkFilter(filter *engine.Filter) error {
	if filter == nil {
		return nil
	}
	need := d.Filter()
	switch {
	case need == nil || need.BoxMap != filter.BoxMap:
		return errors.New("the engine was opened to list boxes on its device that are read in another way now (open it again)")
	case need.Threshold < filter.Threshold:
		return fmt.Errorf("the engine was opened to list boxes from a score of %.3g, not %.3g (open it again)", filter.Threshold, need.Threshold)
	}
	return nil
}

func (d *Decoder) check() error {
	setDefault(&d.IoU, DefaultIoU)
	setDefault(&d.MaxCandidates, DefaultMaxCandidates)
	setDefault(&d.Limit, DefaultLimit)
	setDefault(&d.TopK, DefaultTopK)
	switch {
	case !(d.MinScore >= 0 && d.MinScore < 1):
		return fmt.Errorf("threshold %v is not between 0 and 1", d.MinScore)
	case !(d.IoU > 0 && d.IoU <= 1):
		return fmt.Errorf("iou %v is not between 0 and 1", d.IoU)
	case d.MaxCandidates < 1 || d.MaxCandidates > 1<<20:
		return fmt.Errorf("max candidates %d is not between 1 and %d", d.MaxCandidates, 1<<20)
	case d.Limit < 1 || d.Limit > d.MaxCandidates:
		return fmt.Errorf("limit %d is not between 1 and max candidates %d", d.Limit, d.MaxCandidates)
	case d.TopK < 1:
		return fmt.Errorf("top-k %d is less than 1", d.TopK)
	}
	return nil
}

func setDefault[T int | float32](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// prepare makes the tables that depend on the number of classes that are scored and of those that have labels, 0 while it is not known.
func (d *Decoder) prepare(columns, labels int) error {
	d.columns, d.classes = columns, labels
	for column := range columns {
		if labels == 0 {
			d.classes = max(d.classes, d.fit.Numbering.Class(column)+1)
		}
	}
	classes := d.classes
	for _, class := range d.Classes {
		if class < 0 || (classes > 0 && class >= classes) {
			return fmt.Errorf("class %d is not one of the model's %d", class, classes)
		}
	}
	for class, threshold := range d.ClassMinScores {
		if class < 0 || (classes > 0 && class >= classes) {
			return fmt.Errorf("class %d of the class thresholds is not one of the model's %d", class, classes)
		}
		if !(threshold > 0 && threshold < 1) {
			return fmt.Errorf("threshold %v of class %d is not between 0 and 1", threshold, class)
		}
	}
	if d.about.Task != engine.Classify {
		setDefault(&d.MinScore, postprocess.DefaultConfidence)
	}
	d.thresholds = make([]float32, classes)
	for class := range d.thresholds {
		d.thresholds[class] = d.threshold(class)
	}
	d.asLabels = true
	for number := range d.byLabel {
		class := d.fit.Numbering.Class(number)
		if class < 0 || number == postprocess.NoClass || classes > 0 && (class >= classes || d.thresholds[class] > 1) {
			class = postprocess.NoClass
		}
		d.byLabel[number] = uint8(class)
		d.asLabels = d.asLabels && (class == number || columns > 0 && number >= columns || columns == 0 && number >= d.numbers())
	}
	scored := make([]float32, columns)
	for column := range scored {
		scored[column] = float32(math.Inf(1))
		if class := d.fit.Numbering.Class(column); class >= 0 && class < classes {
			scored[column] = d.thresholds[class]
		}
	}
	lowest := d.MinScore
	for _, threshold := range d.ClassMinScores {
		lowest = min(lowest, threshold)
	}
	d.odds = float32(math.Log(float64(lowest) / (1 - float64(lowest))))
	form := d.about.ScanFormat
	form.MultiLabel = d.MultiLabel
	d.scan.Open(scored, form)
	return nil
}

// threshold is the lowest score at which a class is returned, infinity for one that is not wanted.
func (d *Decoder) threshold(class int) float32 {
	if d.Classes != nil && !slices.Contains(d.Classes, class) {
		return float32(math.Inf(1))
	}
	if own, ok := d.ClassMinScores[class]; ok {
		return own
	}
	return d.MinScore
}

// Decode decodes what an engine gave for one image of a request, by its number, and appends the detections to dst, best first. width and
// height are those of the image in pixels.
func (d *Decoder) Decode(result *engine.Result, number, width, height int, dst []postprocess.Detection) ([]postprocess.Detection, Stats,
	error,
) {
	if err := d.checkCall(result, number, width, height); err != nil {
		return dst, Stats{}, err
	}
	for len(d.details) <= number {
		d.details = append(d.details, details{})
	}
	d.img = img{transform: result.Transforms[number], width: width, height: height, details: &d.details[number]}
	if result.Candidates != nil {
		c := &result.Candidates[number]
		if err := d.list(c.Rows, engine.CandidateFields); err != nil {
			return dst, Stats{}, err
		}
		dst = d.finish(dst)
		stats := &d.img.stats
		stats.Candidates += c.Truncated
		stats.Truncated += c.Truncated
		stats.Invalid += c.Impossible
		stats.BadScores += c.Impossible
		return dst, *stats, nil
	}
	if err := d.cut(result, number); err != nil {
		return dst, Stats{}, fmt.Errorf("decode: %w: %w", ErrOutput, err)
	}
	dst, err := d.decode(dst)
	return dst, d.img.stats, err
}

// Map is what Decode has read of an image that a head of maps says something of every place of; nil for other heads, and where none of the
// places lies in the image. It is valid until the next Decode of an image with the same number.
func (d *Decoder) Map(number int) *postprocess.DenseMap {
	if !d.about.Task.Maps() || number >= len(d.details) || d.details[number].places.Width == 0 {
		return nil
	}
	return &d.details[number].places
}

// Impossible counts the scores that are none in what an engine gave for an image: not a number, under 0 or over 1. It looks at every
// score, where Decode passes over those under the threshold, and takes as long as a few Decodes.
func (d *Decoder) CountBadScores(result *engine.Result, number int) (int, error) {
	if err := d.checkCall(result, number, 1, 1); err != nil {
		return 0, err
	}
	if result.Candidates != nil {
		return result.Candidates[number].Impossible, nil
	}
	if err := d.cut(result, number); err != nil {
		return 0, fmt.Errorf("decode: %w: %w", ErrOutput, err)
	}
	m, dense := d.now.BoxMap()
	if !dense {
		d.img = img{transform: result.Transforms[number], width: 1, height: 1}
		_, err := d.decode(nil)
		return d.img.stats.BadScores, err
	}
	_, scores, err := d.begin(&m)
	if err != nil {
		return 0, err
	}
	return d.scan.CountBadScores(scores), nil
}

func (d *Decoder) checkCall(result *engine.Result, number, width, height int) error {
	if d.layout == head.LayoutAuto {
		return errors.New("decode: the decoder is not open")
	}
	if number < 0 || number >= len(result.Transforms) || result.Candidates != nil && number >= len(result.Candidates) {
		return fmt.Errorf("decode: image %d of a result for %d", number, len(result.Transforms))
	}
	t := &result.Transforms[number]
	switch {
	case width < 1 || height < 1:
		return fmt.Errorf("decode: source image of %dx%d", width, height)
	case !(finite(t.ScaleX) && finite(t.ScaleY) && t.ScaleX > 0 && t.ScaleY > 0 && finite(t.PadX) && finite(t.PadY)):
		return fmt.Errorf("decode: transform %+v cannot be inverted", *t)
	}
	return nil
}

func finite(v float32) bool { return v-v == 0 }

// part is the image's part of an output, by the output's number among the model's.
func (d *Decoder) part(output int) []float32 {
	return d.parts[slices.Index(d.fit.Outputs, output)].data
}

// reserve makes room for that many candidates.
func (d *Decoder) reserve(count int) {
	if cap(d.candidates) < count {
		d.candidates = make([]scan.Candidate, 0, count)
		d.keys = make([]uint64, 0, count)
	}
}

// best keeps the MaxCandidates best of the list.
func (d *Decoder) best(list []scan.Candidate) []scan.Candidate {
	if len(list) <= d.MaxCandidates {
		return list
	}
	keys := sortKeys(d.keys, list)
	selectSmallest(keys, d.MaxCandidates)
	keys = keys[:d.MaxCandidates]
	// In the order of the list, so that moving to the front never overwrites one that is still to move.
	slices.SortFunc(keys, byIndex)
	for to, key := range keys {
		list[to] = list[uint32(key)]
	}
	return list[:d.MaxCandidates]
}

// admits asks whether a box stays; they come best first.
func (d *Decoder) admits(c *scan.Candidate) bool {
	switch {
	case d.about.NMSFree:
		return true
	case d.layout == head.LayoutOBB:
		return d.turned.admit(c, d.turnedBox(c.Index))
	}
	return d.kept.admit(c)
}

// finish sorts, suppresses and takes the boxes to the source image, and fills in what else the head gives.
func (d *Decoder) finish(dst []postprocess.Detection) []postprocess.Detection {
	list, stats, transform := d.best(d.candidates), d.img.stats, d.img.transform
	stats.Truncated = stats.Candidates - len(list)
	keys := sortKeys(d.keys, list)
	slots, first := d.classSlots(list), len(dst)
	d.kept.begin(slots, d.IoU, d.Agnostic)
	d.turned.begin(slots, d.IoU, d.Agnostic)
	d.origins = d.origins[:0]
	width, height := float32(d.img.width), float32(d.img.height)
	right, bottom := float32(d.fit.Width), float32(d.fit.Height) // of the network's input
	count, sorted := 0, 0
	for i := range keys {
		if count == d.Limit {
			stats.Suppressed += len(keys) - i
			break
		}
		if i == sorted {
			sorted += sortFront(keys[i:], list, max(i, sortedRun))
		}
		c := &list[uint32(keys[i])]
		if !d.admits(c) {
			stats.Suppressed++
			continue
		}
		count++
		// One that ends within two pixels is likely in shares of the input, and read as pixels.
		if c.X2 <= 2 && c.Y2 <= 2 || c.X2 <= 0 || c.Y2 <= 0 || c.X1 >= right || c.Y1 >= bottom {
			stats.OutsideInput++
		}
		box := source(&transform, c.Box)
		box.X1, box.X2 = max(box.X1, 0), min(box.X2, width)
		box.Y1, box.Y2 = max(box.Y1, 0), min(box.Y2, height)
		if !(box.X1 < box.X2 && box.Y1 < box.Y2) {
			stats.Outside++
			continue
		}
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, 1)
		}
		dst = dst[:len(dst)+1]
		f := &dst[len(dst)-1] // in place: a literal would be copied
		f.Box, f.Score, f.Class, f.Detail = box, c.Score, d.fit.Numbering.Class(int(c.Class)), nil
		d.origins = append(d.origins, c.Index)
	}
	d.img.stats = stats
	d.describe(dst[first:])
	return dst
}

// source takes a box of the network's input back to the source image. It is not clipped.
func source(t *engine.Transform, input postprocess.Box) postprocess.Box {
	return postprocess.Box{
		X1: (input.X1 - t.PadX) / t.ScaleX, Y1: (input.Y1 - t.PadY) / t.ScaleY,
		X2: (input.X2 - t.PadX) / t.ScaleX, Y2: (input.Y2 - t.PadY) / t.ScaleY,
	}
}

// classSlots is one more than the highest class in the list.
func (d *Decoder) classSlots(list []scan.Candidate) int {
	if d.columns > 0 {
		return d.columns
	}
	highest := int32(0)
	for i := range list {
		highest = max(highest, list[i].Class)
	}
	return int(highest) + 1
}
