package tile

import (
	"cmp"
	"fmt"
	"image"
	"math"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
)

// Tiled is a predictor whose images may be much larger than what its network was made for. The exported fields are set before Open.
//
// It has one slot, because an image's tiles fill all slots of the predictor below, and takes as many images a request as that. Boxes of
// detectors cost no allocation from the second request on; masks, keypoints and turned boxes are copied.
type Tiled struct {
	// Predictor sees the tiles. Closing the Tiled closes it; nothing else may submit to it meanwhile.
	predict.Predictor
	// Tile is the side of the tiles in pixels, even, from MinSide on. An image no larger is one tile.
	Tile int
	// Overlap is the share of a tile that its neighbour sees too, 0 to 0.75. Objects up to that size come out whole.
	Overlap float64
	// WholeImage has the whole image looked at as well, for the objects that no tile holds.
	WholeImage bool
	// Merge is how an object that several views saw whole gets its box: ensemble.Best takes the view's that saw it best, ensemble.Boxes the mean of
	// all, weighted by their scores. Best when empty.
	Merge ensemble.Method
	// Limit is how many detections an image has at most, head.DefaultLimit when 0. Tune changes it.
	Limit int

	shared int // pixels that neighbours have in common
	limit  atomic.Int64

	// Of whoever calls Submit and Wait.
	busy    bool
	batch   int // images of a request
	batcher predict.Batcher
	take    func(number int, seen *predict.Result) // collect, which a loop must not make anew
	grid    []image.Rectangle
	views   []view
	images  []engine.Image       // by view, as the predictor below gets them
	buffers predict.ImageBuffers // by view, of those that are no part of their image's memory
	sizes   []image.Point        // of the images
	merger  merger
	result  predict.BatchResult
}

// view is what one image of a request below shows.
type view struct {
	img   int
	part  image.Rectangle
	whole bool // all of an image that has tiles too
}

// MinSide is the smallest tile in pixels.
const MinSide = 32

// Validate finds what is wrong with the side of tiles and their overlap.
func Validate(side int, overlap float64) error {
	switch {
	case side < MinSide || side > engine.MaxSide || side%2 != 0:
		return fmt.Errorf("tiles of %d pixels, must be an even number from %d to %d", side, MinSide, engine.MaxSide)
	case !(overlap >= 0 && overlap <= 0.75):
		return fmt.Errorf("tiles that overlap by %v, must be 0 to 0.75", overlap)
	}
	return nil
}

// Open checks the settings. An error leaves the predictor below open.
func (t *Tiled) Open() error {
	if err := Validate(t.Tile, t.Overlap); err != nil {
		return err
	}
	if model := t.Model(); !model.Recognised.Task.FindsObjects() {
		return fmt.Errorf("model %s says what a whole image shows, tiles are for what finds objects (leave the tiles away)", model.Path)
	}
	t.shared = int(math.Ceil(float64(t.Tile)*t.Overlap)) + 2*margin(t.Tile)
	if err := t.merger.open(t.shared, t.Merge); err != nil {
		return err
	}
	t.limit.Store(int64(cmp.Or(t.Limit, head.DefaultLimit)))
	t.batch = t.Model().MaxBatch
	t.batcher.Predictor, t.take = t.Predictor, t.collect
	t.result.Results = make([]predict.Result, 0, t.batch)
	return nil
}

// Slots implements predict.Predictor.
func (t *Tiled) Slots() int { return 1 }

// Tune implements predict.Predictor.
func (t *Tiled) Tune(d predict.Decoding) error {
	err := t.Predictor.Tune(d)
	if err == nil {
		t.limit.Store(int64(cmp.Or(d.Limit, head.DefaultLimit)))
	}
	return err
}

func (t *Tiled) refuse(op string, kind error, format string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: t.Model().Backend, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// Submit implements predict.Predictor. It starts the first tiles; Wait goes on with the others.
func (t *Tiled) Submit(slot int, images []engine.Image) error {
	switch {
	case slot != 0:
		return t.refuse("submit", engine.ErrShape, "slot %d, there is only slot 0", slot)
	case t.busy:
		return t.refuse("submit", nil, "slot 0 has a request in flight, wait for it first")
	case len(images) < 1 || len(images) > t.batch:
		return t.refuse("submit", engine.ErrShape, "%d images, 1 to %d fit", len(images), t.batch)
	}
	t.views, t.images, t.sizes = t.views[:0], t.images[:0], t.sizes[:0]
	t.result = predict.BatchResult{Results: t.result.Results[:len(images)]}
	for i := range images {
		at := &t.result.Results[i]
		at.Detections, at.Stats = at.Detections[:0], head.Stats{}
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

// addViews lists the views of an image.
func (t *Tiled) addViews(number int, img *engine.Image) error {
	if err := img.Check(); err != nil {
		return err
	}
	all := view{img: number, part: image.Rect(0, 0, img.Width, img.Height)}
	if img.Width <= t.Tile && img.Height <= t.Tile {
		t.views, t.images = append(t.views, all), append(t.images, *img)
		return nil
	}
	t.grid = appendGrid(t.grid[:0], img.Width, img.Height, t.Tile, t.shared)
	for _, part := range t.grid {
		tile, err := t.part(len(t.views), img, part)
		if err != nil {
			return err
		}
		t.views, t.images = append(t.views, view{number, part, false}), append(t.images, tile)
	}
	if t.WholeImage {
		all.whole = true
		t.views, t.images = append(t.views, all), append(t.images, *img)
	}
	return nil
}

// Wait implements predict.Predictor. The result's Timing is from the first tile's submission to the last one's end, and the sum of the
// work between.
func (t *Tiled) Wait(slot int) (*predict.BatchResult, error) {
	switch {
	case slot != 0:
		return nil, t.refuse("wait", engine.ErrShape, "slot %d, there is only slot 0", slot)
	case !t.busy:
		return nil, t.refuse("wait", nil, "slot 0 has no request in flight, submit one first")
	}
	t.busy = false
	below, err := t.batcher.Wait(t.take)
	if err != nil {
		return nil, err
	}
	t.result.Timing, t.result.Decoding, t.result.Contradiction = below.Timing, below.Decoding, below.Contradiction
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
			if most := int(t.limit.Load()); len(at.Detections) > most {
				at.Stats.Suppressed += len(at.Detections) - most
				at.Detections = at.Detections[:most]
			}
		}
		first = end
	}
	return &t.result, nil
}

// Unwrap gives what the tiles are shown to.
func (t *Tiled) Unwrap() []predict.Predictor { return []predict.Predictor{t.Predictor} }

// Close implements predict.Predictor.
func (t *Tiled) Close() error {
	t.buffers.Free()
	return t.Predictor.Close()
}

// collect takes over what the predictor below saw in a view.
func (t *Tiled) collect(number int, result *predict.Result) {
	v := &t.views[number]
	at := &t.result.Results[v.img]
	at.Err = cmp.Or(at.Err, result.Err)
	at.Stats.Add(&result.Stats)
	t.merger.take(result.Detections, v.part.Min)
}

// translated is a detection of a tile that begins there, on the image. It shares no memory with f where it has details.
func translated(f *postprocess.Detection, by image.Point) postprocess.Detection {
	m := f.Clone()
	m.Translate(by)
	return m
}
