package tile

import (
	"cmp"
	"fmt"
	"image"
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
)

// Tiled is a predictor for images that are much larger than its network's input. Set the exported fields before Open.
//
// It has one slot, because the tiles of an image fill all slots of the predictor, and takes as many images in a request as that. Boxes need
// no allocation from the second request on; masks, keypoints and oriented boxes are copied. The predictor's Decoding.Limit is that of a
// tile; the image has no limit of its own.
type Tiled struct {
	// Predictor runs on the tiles. Close closes it; nothing else may submit to it.
	predict.Predictor
	// Tile is the side of the tiles in pixels, even and at least MinSide. An image no larger is one tile.
	Tile int
	// Overlap is the share of a tile that its neighbour shows as well, 0 to 0.75. Objects up to that size are whole in a tile.
	Overlap float64
	// WholeImage runs the predictor on the whole image as well, for objects larger than a tile.
	WholeImage bool
	// Merge selects the box of an object that several views show whole: ensemble.NMS the one with the best score, ensemble.WeightedBoxes
	// the mean of all weighted by their scores. NMS when empty.
	Merge ensemble.Method

	shared int // pixels that neighbours share

	// Submit and Wait only.
	busy    bool
	batch   int // images of a request
	batcher predict.Batcher
	take    func(number int, seen *predict.Result) // collect, allocated once
	grid    []image.Rectangle
	views   []view
	images  []engine.Image       // by view
	buffers predict.ImageBuffers // by view, of copies
	sizes   []image.Point        // of the images
	merger  merger
	result  predict.BatchResult
}

// view is an image submitted to the predictor.
type view struct {
	img   int
	part  image.Rectangle
	whole bool // the whole of an image with tiles
}

// MinSide is the smallest tile in pixels.
const MinSide = 32

// Validate returns an error unless side and overlap of tiles are usable.
func Validate(side int, overlap float64) error {
	switch {
	case side < MinSide || side > engine.MaxSide || side%2 != 0:
		return fmt.Errorf("tiles of %d pixels, must be an even number from %d to %d", side, MinSide, engine.MaxSide)
	case !(overlap >= 0 && overlap <= 0.75):
		return fmt.Errorf("tiles that overlap by %v, must be 0 to 0.75", overlap)
	}
	return nil
}

// Open validates the settings. An error leaves the predictor open.
func (t *Tiled) Open() error {
	if err := Validate(t.Tile, t.Overlap); err != nil {
		return err
	}
	if model := t.Model(); !model.Recognised.Task.FindsObjects() {
		return fmt.Errorf("model %s is for %s, tiles need a detector (use it without tiles)", model.Path, model.Recognised.Task)
	}
	t.shared = int(math.Ceil(float64(t.Tile)*t.Overlap)) + 2*margin(t.Tile)
	if err := t.merger.open(t.shared, t.Merge); err != nil {
		return err
	}
	t.batch = t.Model().MaxBatch
	t.batcher.Predictor = t.Predictor
	t.take = t.collect
	t.result.Results = make([]predict.Result, 0, t.batch)
	return nil
}

// Slots implements predict.Predictor.
func (t *Tiled) Slots() int { return 1 }

func (t *Tiled) refuse(op string, kind error, format string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: t.Model().Backend, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// Submit implements predict.Predictor. It starts the first tiles; Wait continues with the others.
func (t *Tiled) Submit(slot int, images []engine.Image) error {
	switch {
	case slot != 0:
		return t.refuse("submit", engine.ErrShape, "slot %d, there is only slot 0", slot)
	case t.busy:
		return t.refuse("submit", nil, "slot 0 has a request in flight, wait for it first")
	case len(images) < 1 || len(images) > t.batch:
		return t.refuse("submit", engine.ErrShape, "%d images, 1 to %d fit", len(images), t.batch)
	}
	t.views = t.views[:0]
	t.images = t.images[:0]
	t.sizes = t.sizes[:0]
	t.result = predict.BatchResult{Results: t.result.Results[:len(images)]}
	for i := range images {
		at := &t.result.Results[i]
		at.Detections = at.Detections[:0]
		at.Stats = head.Stats{}
		t.sizes = append(t.sizes, image.Pt(images[i].Width, images[i].Height))
		at.Err = t.addViews(i, &images[i])
	}
	t.merger.begin()
	if err := t.batcher.Submit(t.images); err != nil {
		return err
	}
	t.busy = true
	return nil
}

// addViews adds the views of an image.
func (t *Tiled) addViews(number int, img *engine.Image) error {
	if err := img.Check(); err != nil {
		return err
	}
	all := view{img: number, part: image.Rect(0, 0, img.Width, img.Height)}
	if img.Width <= t.Tile && img.Height <= t.Tile {
		t.add(all, *img)
		return nil
	}
	t.grid = appendGrid(t.grid[:0], img.Width, img.Height, t.Tile, t.shared)
	for _, part := range t.grid {
		tile, err := t.part(len(t.views), img, part)
		if err != nil {
			return err
		}
		t.add(view{number, part, false}, tile)
	}
	if t.WholeImage {
		all.whole = true
		t.add(all, *img)
	}
	return nil
}

func (t *Tiled) add(v view, img engine.Image) {
	t.views = append(t.views, v)
	t.images = append(t.images, img)
}

// Wait implements predict.Predictor. Timing spans the first submission to the last end, and sums the work between.
func (t *Tiled) Wait(slot int) (*predict.BatchResult, error) {
	switch {
	case slot != 0:
		return nil, t.refuse("wait", engine.ErrShape, "slot %d, there is only slot 0", slot)
	case !t.busy:
		return nil, t.refuse("wait", nil, "slot 0 has no request in flight, submit one first")
	}
	t.busy = false
	all, err := t.batcher.Wait(t.take)
	if err != nil {
		return nil, err
	}
	t.result.Timing = all.Timing
	t.result.Decoding = all.Decoding
	t.result.Contradiction = all.Contradiction
	first := 0
	for i := range t.result.Results {
		at, end := &t.result.Results[i], first
		for end < len(t.views) && t.views[end].img == i {
			end++
		}
		if at.Err == nil {
			found := 0
			at.Detections, found = t.merger.merge(at.Detections, t.views[first:end], first, t.sizes[i])
			at.Stats.Suppressed += found - len(at.Detections)
		}
		first = end
	}
	return &t.result, nil
}

// Unwrap returns the predictor.
func (t *Tiled) Unwrap() []predict.Predictor { return []predict.Predictor{t.Predictor} }

// Close implements predict.Predictor.
func (t *Tiled) Close() error {
	t.buffers.Free()
	return t.Predictor.Close()
}

// collect takes the result of a view.
func (t *Tiled) collect(number int, result *predict.Result) {
	v := &t.views[number]
	at := &t.result.Results[v.img]
	at.Err = cmp.Or(at.Err, result.Err)
	at.Stats.Add(&result.Stats)
	t.merger.take(result.Detections, v.part.Min)
}

// translated returns a detection of a tile that begins at by in coordinates of the image. It shares no memory with f.
func translated(f *postprocess.Detection, by image.Point) postprocess.Detection {
	m := f.Clone()
	m.Translate(by)
	return m
}
