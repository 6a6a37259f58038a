package postprocess

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// What Open puts where a Decoder's field is zero.
const (
	DefaultConfidence    = 0.25
	DefaultIoU           = 0.45
	DefaultMaxCandidates = 30000
	DefaultMaxDetections = 300
	DefaultTopK          = 5
)

// ErrLayout is what errors.Is finds in an error of Open: the model's outputs cannot be decoded as they are described.
var ErrLayout = errors.New("unsupported output layout")

// ErrOutput is what errors.Is finds in an error of a Decode method: the numbers do not fit the layout.
var ErrOutput = errors.New("bad network output")

// Decoder turns one picture's part of a network's output into detections.
//
// A box gives one detection, with its best class (argmax), and only when that class is wanted and its score reaches the class's threshold;
// MultiLabel gives one for every class over its threshold instead. Suppression compares boxes of the same class. Boxes that
// are NaN, infinite, empty or outside the picture are skipped and counted, never returned.
//
// Set the fields, call Open once, then Decode from one goroutine at a time: the scratch memory inside belongs to the call. Once the scratch
// has grown to the model's size, decoding allocates nothing but what dst lacks.
type Decoder struct {
	// Layout overrides recognition from the shape.
	Layout Layout
	// Task, Labels, Width and Height are the model's metadata: "detect" or "classify", the number of labels, the network's input in
	// pixels. Zero values mean unknown.
	Task          string
	Labels        int
	Width, Height int
	// Confidence is the lowest score returned, 0 for DefaultConfidence, or for none in a classification. ClassConfidence overrides it by
	// class.
	Confidence      float32
	ClassConfidence map[int]float32
	// IoU is the overlap above which the lower-scored box is suppressed, 0 for DefaultIoU.
	IoU float32
	// Classes are the classes returned; nil for all.
	Classes []int
	// Agnostic lets boxes of different classes suppress each other.
	Agnostic bool
	// MultiLabel gives a box once for every class over the threshold.
	MultiLabel bool
	// MaxCandidates is how many of the best boxes suppression looks at, MaxDetections how many detections are returned.
	MaxCandidates, MaxDetections int
	// TopK is how many classes a classification returns.
	TopK int

	// Set by Open.
	output int
	head   head

	// Decode goroutine only.
	scan       scanner
	candidates []candidate
	keys       []uint64
	kept       suppressor
	widened    []float32
}

// Open recognizes the layout from the shapes of the model's outputs, batch first and -1 where a dimension varies. With several
// outputs the first one that has a known layout is decoded; Output says which. The error says what to override.
func (d *Decoder) Open(outputs ...[]int64) error {
	if err := d.check(); err != nil {
		return fmt.Errorf("open decoder: %w", err)
	}
	if len(outputs) == 0 {
		return fmt.Errorf("open decoder: %w: the model has no output", ErrLayout)
	}
	var first error
	for i, shape := range outputs {
		found, err := d.resolve(shape)
		if err == nil {
			d.output, d.head = i, found
			return d.prepare(found.classes)
		}
		if first == nil {
			first = err
		}
	}
	return fmt.Errorf("open decoder: %w: %w", ErrLayout, first)
}

// Output is the number of the output that is decoded.
func (d *Decoder) Output() int { return d.output }

// Recognized is the layout that is decoded.
func (d *Decoder) Recognized() Layout { return d.head.layout }

// SetConfidence changes the threshold of every class without an own one, between two calls of a Decode method.
func (d *Decoder) SetConfidence(confidence float32) error {
	if !(confidence > 0 && confidence < 1) {
		return fmt.Errorf("confidence %v is not between 0 and 1", confidence)
	}
	d.Confidence = confidence
	d.setThresholds()
	return nil
}

func (d *Decoder) check() error {
	setDefault(&d.IoU, DefaultIoU)
	setDefault(&d.MaxCandidates, DefaultMaxCandidates)
	setDefault(&d.MaxDetections, DefaultMaxDetections)
	setDefault(&d.TopK, DefaultTopK)
	switch {
	case !(d.Confidence >= 0 && d.Confidence < 1):
		return fmt.Errorf("confidence %v is not between 0 and 1", d.Confidence)
	case !(d.IoU > 0 && d.IoU <= 1):
		return fmt.Errorf("iou %v is not between 0 and 1", d.IoU)
	case d.MaxCandidates < 1 || d.MaxCandidates > 1<<20:
		return fmt.Errorf("max candidates %d is not between 1 and %d", d.MaxCandidates, 1<<20)
	case d.MaxDetections < 1 || d.MaxDetections > d.MaxCandidates:
		return fmt.Errorf("max detections %d is not between 1 and max candidates %d", d.MaxDetections, d.MaxCandidates)
	case d.TopK < 1:
		return fmt.Errorf("top-k %d is less than 1", d.TopK)
	case d.Labels < 0 || d.Width < 0 || d.Height < 0:
		return errors.New("labels, width and height cannot be negative")
	}
	return nil
}

func setDefault[T int | float32](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

func (d *Decoder) resolve(shape []int64) (head, error) {
	for _, size := range shape {
		if size < -1 || size == 0 {
			return head{}, fmt.Errorf("output %v has a size that cannot be decoded", shape)
		}
	}
	if d.Layout == LayoutAuto {
		return recognize(shape, d.Task, d.Labels, d.Width, d.Height)
	}
	return named(d.Layout, shape, d.Labels)
}

// prepare makes the tables that depend on the number of classes, which is 0 while it is not known.
func (d *Decoder) prepare(classes int) error {
	for _, class := range d.Classes {
		if class < 0 || (classes > 0 && class >= classes) {
			return fmt.Errorf("open decoder: class %d is not one of the model's %d", class, classes)
		}
	}
	for class, confidence := range d.ClassConfidence {
		if class < 0 || (classes > 0 && class >= classes) {
			return fmt.Errorf("open decoder: class %d of the class thresholds is not one of the model's %d", class, classes)
		}
		if !(confidence > 0 && confidence < 1) {
			return fmt.Errorf("open decoder: confidence %v of class %d is not between 0 and 1", confidence, class)
		}
	}
	if d.head.layout != LayoutClassify {
		setDefault(&d.Confidence, DefaultConfidence)
	}
	d.head.classes = classes
	d.scan.open(classes, d.MultiLabel)
	d.setThresholds()
	return nil
}

func (d *Decoder) setThresholds() {
	lowest := float32(math.Inf(1))
	for class := range d.scan.thresholds {
		threshold := d.threshold(class)
		d.scan.thresholds[class] = threshold
		lowest = min(lowest, threshold)
	}
	d.scan.setThreshold(lowest)
}

// threshold is the lowest score at which a class is returned, infinity for one that is not wanted.
func (d *Decoder) threshold(class int) float32 {
	if d.Classes != nil && !slices.Contains(d.Classes, class) {
		return float32(math.Inf(1))
	}
	if own, ok := d.ClassConfidence[class]; ok {
		return own
	}
	return d.Confidence
}

// Decode decodes the output of one picture and appends the detections to dst, best first. data holds the numbers of that picture alone;
// shape is the tensor's, batch included, and the batch is ignored. width and height are those of the source picture.
func (d *Decoder) Decode(data []float32, shape []int64, transform Transform, width, height int, dst []Detection) ([]Detection, Stats, error) {
	var stats Stats
	if err := d.checkCall(transform, width, height); err != nil {
		return dst, stats, err
	}
	h, err := named(d.head.layout, shape, d.head.classes)
	switch {
	case err != nil:
		return dst, stats, fmt.Errorf("decode: %w: %w", ErrOutput, err)
	case !holds(shape[1:], len(data)):
		return dst, stats, fmt.Errorf("decode: %w: %d numbers for shape %v", ErrOutput, len(data), shape)
	}
	if h.classes != d.head.classes {
		// The model left the number of classes open until its first result.
		if err := d.prepare(h.classes); err != nil {
			return dst, stats, err
		}
	}
	switch h.layout {
	case LayoutClassify:
		return d.classify(data, width, height, dst, stats)
	case LayoutEnd2End:
		return d.DecodeCandidates(data, transform, width, height, dst)
	}
	d.gather(h, data, &stats)
	dst = d.finish(transform, width, height, true, dst, &stats)
	return dst, stats, nil
}

// DecodeHalf is Decode for a network with binary16 outputs.
func (d *Decoder) DecodeHalf(data []uint16, shape []int64, transform Transform, width, height int, dst []Detection) ([]Detection, Stats, error) {
	if cap(d.widened) < len(data) {
		d.widened = make([]float32, len(data))
	}
	d.widened = d.widened[:len(data)]
	widen(d.widened, data)
	return d.Decode(d.widened, shape, transform, width, height, dst)
}

func (d *Decoder) checkCall(transform Transform, width, height int) error {
	switch {
	case d.head.layout == LayoutAuto:
		return errors.New("decode: the decoder is not open")
	case width < 1 || height < 1:
		return fmt.Errorf("decode: source picture of %dx%d", width, height)
	case !(finite(transform.ScaleX) && finite(transform.ScaleY) && transform.ScaleX > 0 && transform.ScaleY > 0 &&
		finite(transform.PadX) && finite(transform.PadY)):
		return fmt.Errorf("decode: transform %+v cannot be inverted", transform)
	}
	return nil
}

func finite(v float32) bool { return v-v == 0 }

// holds reports whether a tensor of that shape has count elements.
func holds(shape []int64, count int) bool {
	elements := int64(1)
	for _, size := range shape {
		if size < 1 || elements > int64(count)/size {
			return false
		}
		elements *= size
	}
	return elements == int64(count)
}

// reserve makes room for that many candidates.
func (d *Decoder) reserve(count int) {
	if cap(d.candidates) < count {
		d.candidates = make([]candidate, 0, count)
		d.keys = make([]uint64, 0, count)
	}
}

// gather scans a dense map. A list that fills up is cut to the best MaxCandidates before the scan goes on, so that the memory is bounded
// whatever the threshold.
func (d *Decoder) gather(h head, data []float32, stats *Stats) {
	room := int(h.boxes)
	if d.MultiLabel {
		room = 2 * d.MaxCandidates
	}
	d.reserve(room)
	d.scan.begin(h.boxes)
	list := d.candidates[:0:room]
	for more := true; more; {
		before := len(list)
		list, more = d.scan.next(h.layout, data, list)
		stats.Candidates += len(list) - before
		if more {
			list = d.best(list)
		}
	}
	d.candidates = list
	stats.Invalid += d.scan.invalid()
}

// best keeps the MaxCandidates best of the list.
func (d *Decoder) best(list []candidate) []candidate {
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

// finish sorts, suppresses and takes the boxes to the source picture.
func (d *Decoder) finish(transform Transform, width, height int, suppress bool, dst []Detection, stats *Stats) []Detection {
	list := d.best(d.candidates)
	stats.Truncated = stats.Candidates - len(list)
	keys := sortKeys(d.keys, list)
	sortByScore(keys, list)
	d.kept.begin(d.classSlots(list), d.IoU, d.Agnostic)
	right, bottom := float32(width), float32(height)
	count := 0
	for _, key := range keys {
		c := &list[uint32(key)]
		if count == d.MaxDetections || (suppress && !d.kept.admit(c)) {
			stats.Suppressed++
			continue
		}
		count++
		box := transform.Source(c.Box)
		box.X1, box.X2 = max(box.X1, 0), min(box.X2, right)
		box.Y1, box.Y2 = max(box.Y1, 0), min(box.Y2, bottom)
		if !(box.X1 < box.X2 && box.Y1 < box.Y2) {
			stats.Outside++
			continue
		}
		dst = append(dst, Detection{Box: box, Score: c.score, Class: int(c.class)})
	}
	return dst
}

// classSlots is one more than the highest class in the list.
func (d *Decoder) classSlots(list []candidate) int {
	if d.head.classes > 0 {
		return d.head.classes
	}
	highest := int32(0)
	for i := range list {
		highest = max(highest, list[i].class)
	}
	return int(highest) + 1
}
