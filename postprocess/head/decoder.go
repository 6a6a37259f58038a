package head

import (
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// ErrOutput is wrapped by errors of Decode for outputs that do not fit the layout.
var ErrOutput = errors.New("bad network output")

// Decoder turns one image's part of a network's outputs into detections.
//
// A box yields one detection with its best class (argmax), and only if that class is wanted and its score reaches the class's minimum;
// MultiLabel yields one for every class that does. Suppression compares boxes of the same class. Boxes that are NaN, infinite, empty or
// outside the image are skipped and counted, never returned.
//
// One goroutine at a time may use it, because it owns scratch memory. Once that has grown to the model's size, Decode allocates only what
// dst lacks.
type Decoder struct {
	settings settings
	in       input
	decoder  decoder
	boxes    boxes // for candidates listed by an engine, and for counting scores
}

// NewDecoder recognises the head of a model and returns a decoder for it. An ErrLayout names what would make an unclear layout certain.
func NewDecoder(model *engine.Model, o Options) (*Decoder, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open decoder: %w", err)
	}
	found, err := recognise(model, o.Layout)
	if err != nil {
		return nil, err
	}
	d := &Decoder{settings: settings{Options: o, match: found, about: found.describe()}}
	d.in.shapes = make([][]int64, len(found.outputs))
	d.in.tensors = make([]tensor, len(found.outputs))
	if err := d.setClasses(found.classes, len(model.Metadata.Labels)); err != nil {
		return nil, fmt.Errorf("open decoder: %w", err)
	}
	if err := d.checkFilter(model.Filter); err != nil {
		return nil, fmt.Errorf("open decoder: %w", err)
	}
	return d, nil
}

// setClasses creates the head's decoder for the number of scored classes (columns) and of labels.
func (d *Decoder) setClasses(columns, labels int) error {
	if err := d.settings.setClasses(columns, labels); err != nil {
		return err
	}
	d.boxes = newBoxes(&d.settings)
	d.decoder = d.settings.match.head.newDecoder(&d.settings)
	return nil
}

// Recognised returns the recognised head.
func (d *Decoder) Recognised() Recognition { return d.settings.match.recognition(d.settings.classes) }

// Filter returns what an engine may list on its device for this decoder; nil when it needs the whole outputs.
func (d *Decoder) Filter() *engine.Filter {
	s := &d.settings
	m, ok := s.match.head.boxMap(&s.match)
	_, details := s.match.head.(detailed)
	if !ok || details || s.MultiLabel || s.about.ScanFormat.Logits || s.about.ScanFormat.Raw {
		return nil
	}
	return &engine.Filter{BoxMap: m, Threshold: s.leastMinScore()}
}

// checkFilter returns an error if the engine lists other candidates than the decoder needs.
func (d *Decoder) checkFilter(filter *engine.Filter) error {
	if filter == nil {
		return nil
	}
	need := d.Filter()
	switch {
	case need == nil || need.BoxMap != filter.BoxMap:
		return errors.New("the engine was opened to list boxes on its device that are now read differently (open it again)")
	case need.Threshold < filter.Threshold:
		return fmt.Errorf("the engine was opened to list boxes from a score of %.3g, not %.3g (open it again)", filter.Threshold,
			need.Threshold)
	}
	return nil
}

// Decode decodes the result for one image of a request, by its index, and appends the detections to dst, best first. width and height are
// the size of the source image in pixels. Details of detections are valid until the next Decode of an image with the same index.
func (d *Decoder) Decode(result *engine.Result, index, width, height int, dst []postprocess.Detection) (
	[]postprocess.Detection, Stats, error,
) {
	if err := d.begin(result, index, width, height); err != nil {
		return dst, Stats{}, err
	}
	if result.Candidates != nil {
		return d.decodeListed(&result.Candidates[index], dst)
	}
	if err := d.slice(result, index); err != nil {
		return dst, Stats{}, fmt.Errorf("decode: %w: %w", ErrOutput, err)
	}
	dst, err := d.decoder.decode(&d.in, dst)
	return dst, d.in.stats, err
}

// decodeListed decodes the candidates that an engine has listed on its device.
func (d *Decoder) decodeListed(c *engine.Candidates, dst []postprocess.Detection) ([]postprocess.Detection, Stats, error) {
	if err := d.boxes.list(&d.in, c.Rows, engine.CandidateFields); err != nil {
		return dst, Stats{}, err
	}
	dst = d.boxes.finish(&d.in, dst)
	stats := &d.in.stats
	stats.Candidates += c.Truncated
	stats.Truncated += c.Truncated
	stats.Invalid += c.Impossible
	stats.BadScores += c.Impossible
	return dst, *stats, nil
}

// mapDecoder decodes a head with a value for every pixel of the image.
type mapDecoder interface {
	decoder
	// denseMap returns the map of an image by its index in the request, nil for none.
	denseMap(index int) *postprocess.DenseMap
}

// Map returns the segmentation or depth map of an image that Decode has read; nil for other heads, and where no cell lies in the image. It
// is valid until the next Decode of an image with the same index.
func (d *Decoder) Map(index int) *postprocess.DenseMap {
	maps, ok := d.decoder.(mapDecoder)
	if !ok {
		return nil
	}
	return maps.denseMap(index)
}

// CountBadScores counts the values of an image that cannot be scores: NaN, below 0 or above 1. It reads every score, where Decode skips
// those below the minimum, and takes as long as several calls of Decode.
func (d *Decoder) CountBadScores(result *engine.Result, index int) (int, error) {
	if err := d.begin(result, index, 1, 1); err != nil {
		return 0, err
	}
	if result.Candidates != nil {
		return result.Candidates[index].Impossible, nil
	}
	if err := d.slice(result, index); err != nil {
		return 0, fmt.Errorf("decode: %w: %w", ErrOutput, err)
	}
	if m, dense := d.in.match.head.boxMap(&d.in.match); dense {
		return d.boxes.countBadScores(&d.in, &m)
	}
	d.in.scoresOnly = true
	_, err := d.decoder.decode(&d.in, nil)
	return d.in.stats.BadScores, err
}

// begin checks the arguments of a call and starts with an image.
func (d *Decoder) begin(result *engine.Result, index, width, height int) error {
	if index < 0 || index >= len(result.Transforms) || result.Candidates != nil && index >= len(result.Candidates) {
		return fmt.Errorf("decode: image %d of a result for %d", index, len(result.Transforms))
	}
	t := &result.Transforms[index]
	switch {
	case width < 1 || height < 1:
		return fmt.Errorf("decode: source image of %dx%d", width, height)
	case !(finite(t.ScaleX) && finite(t.ScaleY) && t.ScaleX > 0 && t.ScaleY > 0 && finite(t.PadX) && finite(t.PadY)):
		return fmt.Errorf("decode: transform %+v cannot be inverted", *t)
	}
	d.in.begin(t, index, width, height)
	return nil
}

// slice finds the image's part of every output that the head reads, and measures it.
func (d *Decoder) slice(result *engine.Result, index int) error {
	s := &d.settings
	for role, output := range s.match.outputs {
		if output >= len(result.Outputs) {
			return fmt.Errorf("output %d of a result with %d", output, len(result.Outputs))
		}
		if err := d.in.set(role, &result.Outputs[output], index, &s.about); err != nil {
			return err
		}
	}
	measured, err := s.match.head.measure(d.in.shapes)
	if err != nil {
		return err
	}
	if measured.classes == 0 {
		measured.classes = s.columns
	}
	if s.columns == 0 && measured.classes > 0 { // the model left them open until its first result
		if s.classes > 0 && measured.classes != s.classes {
			return fmt.Errorf("%v has %s, not %d", d.in.shapes, plural(measured.classes, "class"), s.classes)
		}
		if err := d.setClasses(measured.classes, s.classes); err != nil {
			return err
		}
	}
	if measured.classes != s.columns {
		return fmt.Errorf("%v has %s, not %d", d.in.shapes, plural(measured.classes, "class"), s.columns)
	}
	d.in.match = s.match
	d.in.match.sizes = measured
	return nil
}

// Stats counts what decoding one image did. Candidates - Truncated entered suppression.
type Stats struct {
	Candidates    int     // boxes above the minimum score
	Truncated     int     // candidates dropped because there were more than Options.MaxCandidates, or than an engine's list holds
	Suppressed    int     // candidates removed by a better overlapping box, or by Options.Limit
	Cut           float32 // score of the best detection removed by Options.Limit, 0 if none was
	Outside       int     // boxes wholly outside the source image, in the letterbox bars for instance
	Invalid       int     // values skipped: boxes that are NaN, infinite or empty, and BadScores
	BadScores     int     // values that cannot be scores (NaN, below 0, above 1), and class numbers that the model does not have
	UnknownPixels int     // pixels of a segmentation map that are NaN or a class number that the model does not have
	OutsideInput  int     // boxes wholly outside the network's input, or within its first two pixels: the outputs are read wrongly
	// LikeCorners is the number of boxes whose centre and sides could be two corners as well, Overhanging how many of them reach far
	// beyond the network's input as centre and sides, which trained networks do not give.
	LikeCorners, Overhanging int
	// HeatMaps is 1 for a segmentation map whose scores are near 0 for all classes in most places, with peaks, as heat maps of keypoints are;
	// ScoreMaps is 1 for one whose scores are not.
	HeatMaps, ScoreMaps int
}

// Add adds the counts of another image.
func (s *Stats) Add(more *Stats) {
	s.Candidates += more.Candidates
	s.Truncated += more.Truncated
	s.Suppressed += more.Suppressed
	s.Cut = max(s.Cut, more.Cut)
	s.Outside += more.Outside
	s.Invalid += more.Invalid
	s.BadScores += more.BadScores
	s.UnknownPixels += more.UnknownPixels
	s.OutsideInput += more.OutsideInput
	s.LikeCorners += more.LikeCorners
	s.Overhanging += more.Overhanging
	s.HeatMaps += more.HeatMaps
	s.ScoreMaps += more.ScoreMaps
}

func finite(v float32) bool { return v-v == 0 }
