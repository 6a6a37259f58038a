package tile_test

import (
	"cmp"
	"errors"
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
	"github.com/edge-infer/edge-infer/postprocess/predict/tile"
)

// oracle is a predictor that knows the objects of every image and says exactly what a view shows of them, cut where the view ends.
type oracle struct {
	engine.Memory
	t     *testing.T
	batch int
	slots int
	task  engine.Task

	images  []engine.Image
	objects [][]postprocess.Detection
	random  *rand.Rand
	blind   func(image.Rectangle, *postprocess.Detection) bool // what a view of that part does not see; nil for nothing
	blur    float32                                            // how far off the sides of boxes may be, in pixels

	requests [][]engine.Image // by slot, nil for none
	result   []predict.BatchResult
	parts    []image.Rectangle // of all views since the start
	largest  int               // batch
	fail     error             // of the second Wait
	closed   bool
}

func newOracle(t *testing.T, batch, slots int, seed uint64) *oracle {
	return &oracle{
		t: t, batch: batch, slots: slots, task: engine.Detect, random: rand.New(rand.NewPCG(seed, 1)),
		requests: make([][]engine.Image, slots), result: make([]predict.BatchResult, slots),
	}
}

// image adds an image with its objects. Its first bytes of every row are never read: a view is known by where its memory begins.
func (o *oracle) img(width, height int, format engine.PixelFormat, objects ...postprocess.Detection) engine.Image {
	stride := format.RowBytes(width) + 10
	p := engine.Image{Data: make([]byte, stride*format.Rows(height)), Width: width, Height: height, Stride: stride, Format: format}
	if format == engine.NV12 { // parts are copies: their first pixels say where they begin
		for y := range height {
			for x := 0; x < width; x += 2 {
				p.Data[y*stride+x], p.Data[y*stride+x+1] = byte(x/2), byte(y/2)
			}
		}
	}
	o.images, o.objects = append(o.images, p), append(o.objects, objects)
	return p
}

func (o *oracle) Model() predict.Model {
	return predict.Model{
		Model:      engine.Model{Path: "oracle.onnx", Backend: "oracle", MaxBatch: o.batch},
		Recognised: head.Recognition{Description: head.Description{Task: o.task}},
	}
}
func (o *oracle) Slots() int                  { return o.slots }
func (o *oracle) Tune(predict.Decoding) error { return nil }
func (o *oracle) Close() error                { o.closed = true; return nil }

func (o *oracle) Submit(slot int, views []engine.Image) error {
	require.Nil(o.t, o.requests[slot], "the slot is busy")
	require.NotEmpty(o.t, views)
	require.LessOrEqual(o.t, len(views), o.batch)
	o.largest = max(o.largest, len(views))
	o.requests[slot] = views
	return nil
}

func (o *oracle) Wait(slot int) (*predict.BatchResult, error) {
	require.NotNil(o.t, o.requests[slot], "nothing is in flight")
	views := o.requests[slot]
	o.requests[slot] = nil
	if o.fail != nil && len(o.parts) > 0 {
		return nil, o.fail
	}
	r := &o.result[slot]
	r.Results = r.Results[:0]
	r.Timing = engine.Timing{Submitted: int64(100 + len(o.parts)), Done: int64(200 + len(o.parts)), Inference: 5}
	for i := range views {
		require.NoError(o.t, views[i].Check())
		number, part := o.place(&views[i])
		o.parts = append(o.parts, part)
		r.Results = append(r.Results, predict.Result{Detections: o.see(number, part)})
	}
	return r, nil
}

// place finds the image that a view is a part of, by its memory.
func (o *oracle) place(v *engine.Image) (number int, part image.Rectangle) {
	if v.Format == engine.NV12 && len(o.images) == 1 {
		begin := image.Pt(2*int(v.Data[0]), 2*int(v.Data[1]))
		return 0, image.Rectangle{Min: begin, Max: begin.Add(image.Pt(v.Width, v.Height))}
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(v.Data)))
	for i := range o.images {
		p := &o.images[i]
		offset := int(at - uintptr(unsafe.Pointer(unsafe.SliceData(p.Data))))
		if offset < 0 || offset >= len(p.Data) {
			continue
		}
		require.Equal(o.t, p.Stride, v.Stride)
		require.Equal(o.t, p.Format, v.Format)
		pixel := p.Format.RowBytes(2) / 2
		require.Zero(o.t, offset%p.Stride%pixel)
		begin := image.Pt(offset%p.Stride/pixel, offset/p.Stride)
		part = image.Rectangle{Min: begin, Max: begin.Add(image.Pt(v.Width, v.Height))}
		require.True(o.t, part.In(image.Rect(0, 0, p.Width, p.Height)))
		return i, part
	}
	o.t.Fatal("a view of no image: it was copied")
	return 0, part
}

// see is what a part of an image shows, best first, with scores of its own.
func (o *oracle) see(number int, part image.Rectangle) (seen []postprocess.Detection) {
	left, top := float32(part.Min.X), float32(part.Min.Y)
	for _, object := range o.objects[number] {
		if o.blind != nil && o.blind(part, &object) {
			continue
		}
		f := object.Clone()
		if o.blur > 0 {
			for _, side := range []*float32{&f.X1, &f.Y1, &f.X2, &f.Y2} {
				*side += o.blur * (2*o.random.Float32() - 1)
			}
		}
		f.X1, f.X2 = max(f.X1-left, 0), min(f.X2-left, float32(part.Dx()))
		f.Y1, f.Y2 = max(f.Y1-top, 0), min(f.Y2-top, float32(part.Dy()))
		if f.X1 < f.X2 && f.Y1 < f.Y2 {
			f.Score = 0.1 + 0.9*o.random.Float32()
			if f.Detail != nil {
				for k := range f.Detail.Keypoints {
					f.Detail.Keypoints[k].X -= left
					f.Detail.Keypoints[k].Y -= top
				}
				if f.Detail.Oriented != nil {
					f.Detail.Oriented.X -= left
					f.Detail.Oriented.Y -= top
				}
				f.Detail.Mask.Bounds = f.Detail.Mask.Bounds.Sub(part.Min).Intersect(image.Rect(0, 0, part.Dx(), part.Dy()))
				f.Detail.Mask.X += left * f.Detail.Mask.StepX
				f.Detail.Mask.Y += top * f.Detail.Mask.StepY
				crop(f.Detail.Mask)
			}
			seen = append(seen, f)
		}
	}
	slices.SortFunc(seen, func(a, b postprocess.Detection) int { return cmp.Compare(b.Score, a.Score) })
	return seen
}

// crop leaves those points of the grid that a network's would have that sees no more than the mask's bounds.
func crop(m *postprocess.Mask) {
	last := m.Bounds.Max.Sub(image.Pt(1, 1))
	left, right := int(m.X+float32(m.Bounds.Min.X)*m.StepX), int(m.X+float32(last.X)*m.StepX+0.999)
	top, bottom := int(m.Y+float32(m.Bounds.Min.Y)*m.StepY), int(m.Y+float32(last.Y)*m.StepY+0.999)
	right, bottom = min(right, m.Width-1), min(bottom, m.Height-1)
	var kept []float32
	for row := top; row <= bottom; row++ {
		kept = append(kept, m.Logits[row*m.Width+left:row*m.Width+right+1]...)
	}
	m.Logits, m.Width, m.Height = kept, right-left+1, bottom-top+1
	m.X, m.Y = m.X-float32(left), m.Y-float32(top)
}

func open(t *testing.T, tiled *tile.Tiled) *tile.Tiled {
	require.NoError(t, tiled.Open())
	return tiled
}

func run(t *testing.T, p predict.Predictor, images ...engine.Image) []predict.Result {
	seen, err := predict.Run(p, images...)
	require.NoError(t, err)
	return seen
}

// objects are random boxes no larger than most, which may overlap as far as suppression leaves them.
func objects(random *rand.Rand, count, classes, width, height, most int) (all []postprocess.Detection) {
	for range count {
		w, h := 3+random.IntN(most-2), 3+random.IntN(most-2)
		if w > width || h > height {
			continue
		}
		x, y := random.IntN(width-w+1), random.IntN(height-h+1)
		if near := len(all) - 1; near >= 0 && random.IntN(3) == 0 { // crowds are what confuses
			b := all[near].Box
			x, y = int(b.X1)+random.IntN(9)-4, int(b.Y1)+random.IntN(9)-4
			x, y = min(max(x, 0), width-w), min(max(y, 0), height-h)
		}
		f := postprocess.Detection{
			Box:   postprocess.Box{X1: float32(x), Y1: float32(y), X2: float32(x + w), Y2: float32(y + h)},
			Class: random.IntN(classes),
		}
		free := true
		for _, other := range all {
			free = free && (other.Class != f.Class && other.Box != f.Box || other.IoU(f.Box) < 0.69)
		}
		if free {
			all = append(all, f)
		}
	}
	return all
}

// boxes are what was found, without scores.
func boxes(detections []postprocess.Detection) (all []postprocess.Detection) {
	for _, f := range detections {
		all = append(all, postprocess.Detection{Box: f.Box, Class: f.Class})
	}
	return all
}

// TestEveryObjectComesOutOnce: over random scenes, sizes, tiles and overlaps nothing no larger than the overlap is lost at a border or told
// twice, and what comes out is the object's own box, whichever way of merging is asked for.
func TestEveryObjectComesOutOnce(t *testing.T) {
	formats := []engine.PixelFormat{engine.BGR, engine.BGRx, engine.GRAY8, engine.YUYV}
	total, views := 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 2))
		side := 32 + 2*random.IntN(50)
		overlap := 0.15 + 0.6*random.Float64()
		o := newOracle(t, 1+random.IntN(8), 1+random.IntN(3), seed)
		merge := []ensemble.Method{ensemble.NMS, ensemble.WeightedBoxes}[seed%2]
		tiled := open(t, &tile.Tiled{Predictor: o, Tile: side, Overlap: overlap, WholeImage: random.IntN(2) == 0, Merge: merge})
		var images []engine.Image
		for range 1 + random.IntN(3) {
			width, height := 2*(8+random.IntN(150)), 16+random.IntN(300)
			truth := objects(random, random.IntN(60), 1+random.IntN(3), width, height, max(int(overlap*float64(side)), 3))
			images = append(images, o.img(width, height, formats[random.IntN(len(formats))], truth...))
			total += len(truth)
		}
		seen := run(t, tiled, images...)
		for i := range images {
			require.NoError(t, seen[i].Err)
			require.ElementsMatch(t, o.objects[i], boxes(seen[i].Detections), "seed %d, image %d of %dx%d, tiles of %d overlapping by %.2f by %s",
				seed, i, images[i].Width, images[i].Height, side, overlap, merge)
		}
		views += len(o.parts)
	}
	t.Logf("%d objects in %d views", total, views)
	require.Greater(t, total, 5000)
}

// TestBlurredObjectsComeOutOnce: views that do not agree about the sides of a box see one object all the same, also where they are parts of
// an image of two planes; and the mean of what they see is nearer to the truth than what one of them saw.
func TestBlurredObjectsComeOutOnce(t *testing.T) {
	off := map[ensemble.Method]float64{}
	for _, merge := range []ensemble.Method{ensemble.NMS, ensemble.WeightedBoxes} {
		total := 0
		for seed := range uint64(60) {
			random := rand.New(rand.NewPCG(seed, 3))
			o := newOracle(t, 4, 2, seed)
			o.blur = 1
			tiled := open(t, &tile.Tiled{Predictor: o, Tile: 96, Overlap: 0.5, Merge: merge})
			var truth []postprocess.Detection
			for x := 8; x < 380; x += 60 {
				for y := 8; y < 280; y += 60 {
					left, top := float32(x+random.IntN(16)), float32(y+random.IntN(16))
					truth = append(truth, postprocess.Detection{Box: postprocess.Box{X1: left, Y1: top, X2: left + 30, Y2: top + 30}})
				}
			}
			format := []engine.PixelFormat{engine.BGR, engine.NV12}[seed%2]
			seen := run(t, tiled, o.img(420, 320, format, truth...))
			require.NoError(t, seen[0].Err)
			require.Len(t, seen[0].Detections, len(truth), "seed %d by %s", seed, merge)
			for _, object := range truth {
				near := slices.IndexFunc(seen[0].Detections, func(f postprocess.Detection) bool { return f.IoU(object.Box) > 0.8 })
				require.GreaterOrEqual(t, near, 0, "seed %d: %v is lost", seed, object)
				off[merge] += math.Abs(float64(seen[0].Detections[near].X1 - object.X1))
			}
			total += len(truth)
			require.NoError(t, tiled.Close())
		}
		off[merge] /= float64(total)
	}
	t.Logf("left sides are off by %.2f pixels with the best view, %.2f with the mean", off[ensemble.NMS], off[ensemble.WeightedBoxes])
	require.Less(t, off[ensemble.WeightedBoxes], 0.9*off[ensemble.NMS])
}

// TestAnObjectLargerThanTheOverlapIsPutTogether: every tile cuts it, and its pieces become one box.
func TestAnObjectLargerThanTheOverlapIsPutTogether(t *testing.T) {
	for _, whole := range []bool{false, true} {
		large := postprocess.Detection{Box: postprocess.Box{X1: 20, Y1: 30, X2: 190, Y2: 70}}
		small := postprocess.Detection{Box: postprocess.Box{X1: 60, Y1: 35, X2: 70, Y2: 45}} // of the same class, on the large one
		o := newOracle(t, 4, 2, 1)
		tiled := open(t, &tile.Tiled{Predictor: o, Tile: 64, Overlap: 0.25, WholeImage: whole})
		seen := run(t, tiled, o.img(200, 100, engine.BGR, large, small))
		require.ElementsMatch(t, []postprocess.Detection{large, small}, boxes(seen[0].Detections), "whole %v", whole)
		require.Equal(t, 4, o.largest, "batches are filled")
	}
}

// TestWhatOnlyACutViewSeesIsNotLost: the views that hold it whole miss it, and others see different things there.
func TestWhatOnlyACutViewSeesIsNotLost(t *testing.T) {
	missed := postprocess.Detection{Box: postprocess.Box{X1: 40, Y1: 10, X2: 54, Y2: 24}}
	beside := postprocess.Detection{Box: postprocess.Box{X1: 30, Y1: 10, X2: 44, Y2: 24}, Class: 1}
	o := newOracle(t, 1, 1, 1)
	o.blind = func(part image.Rectangle, f *postprocess.Detection) bool { return f.Class == 0 && part.Min.X == 0 }
	tiled := open(t, &tile.Tiled{Predictor: o, Tile: 64, Overlap: 0.25})
	seen := run(t, tiled, o.img(108, 64, engine.BGR, missed, beside))
	require.Equal(t, []image.Rectangle{image.Rect(0, 0, 64, 64), image.Rect(44, 0, 108, 64)}, o.parts)
	require.ElementsMatch(t, []postprocess.Detection{
		{Box: postprocess.Box{X1: 44, Y1: 10, X2: 54, Y2: 24}}, beside,
	}, boxes(seen[0].Detections))
}

// TestAPieceTakenForSomethingElseIsDropped: half a gear looks like a washer, but another tile has seen the gear.
func TestAPieceTakenForSomethingElseIsDropped(t *testing.T) {
	gear := postprocess.Detection{Box: postprocess.Box{X1: 40, Y1: 10, X2: 54, Y2: 24}, Class: 3}
	o := newOracle(t, 2, 1, 1)
	tiled := open(t, &tile.Tiled{Predictor: mistaken{o}, Tile: 64, Overlap: 0.25})
	seen := run(t, tiled, o.img(108, 64, engine.BGR, gear))
	require.Equal(t, []postprocess.Detection{gear}, boxes(seen[0].Detections))
	require.Equal(t, 1, seen[0].Stats.Suppressed)
}

// TestAPieceOfAHigherScoreIsDropped: what a border leaves of an object is detected too small, so that it does not agree with the whole
// object, and with a higher score.
func TestAPieceOfAHigherScoreIsDropped(t *testing.T) {
	for height, dropped := range map[float32]bool{5: true, 23: true, 40: false} {
		car := postprocess.Detection{Box: postprocess.Box{X1: 24, Y1: 10, X2: 54, Y2: 24}, Class: 3}
		piece := postprocess.Box{X1: 44, Y1: 12, X2: 54, Y2: 12 + height} // by the intersection over its area: 1, .52, .3
		o := newOracle(t, 2, 1, 1)
		tiled := open(t, &tile.Tiled{Predictor: misjudged{o, piece}, Tile: 64, Overlap: 0.25})
		seen := run(t, tiled, o.img(108, 64, engine.BGR, car))
		want := []postprocess.Detection{car}
		if !dropped {
			want = append(want, postprocess.Detection{Box: piece, Class: 3})
		}
		require.ElementsMatch(t, want, boxes(seen[0].Detections), "%v high", height)
	}
}

// misjudged sees another box in what the first border cuts, and is sure of it.
type misjudged struct {
	*oracle
	piece postprocess.Box
}

func (m misjudged) Wait(slot int) (*predict.BatchResult, error) {
	r, err := m.oracle.Wait(slot)
	for i := range r.Results {
		for j := range r.Results[i].Detections {
			if f := &r.Results[i].Detections[j]; f.X1 == 0 {
				const left = 44 // of the second tile
				f.Box = postprocess.Box{X1: m.piece.X1 - left, Y1: m.piece.Y1, X2: m.piece.X2 - left, Y2: m.piece.Y2}
				f.Score = 1
			}
		}
	}
	return r, err
}

// mistaken takes what the first border cuts for class 0 of a low score.
type mistaken struct{ *oracle }

func (m mistaken) Wait(slot int) (*predict.BatchResult, error) {
	r, err := m.oracle.Wait(slot)
	for i := range r.Results {
		for j := range r.Results[i].Detections {
			if f := &r.Results[i].Detections[j]; f.X1 == 0 {
				f.Class, f.Score = 0, 0.05
			}
		}
	}
	return r, err
}

func TestDetailsMoveWithTheirDetection(t *testing.T) {
	object := postprocess.Detection{Box: postprocess.Box{X1: 130, Y1: 90, X2: 142, Y2: 102}, Detail: &postprocess.Detail{
		Keypoints: []postprocess.Keypoint{{X: 131, Y: 92, Score: 1}},
		Oriented:  &postprocess.OrientedBox{X: 136, Y: 96, Width: 9, Height: 7, Angle: 0.5},
		Mask: &postprocess.Mask{
			Bounds: image.Rect(130, 90, 142, 102), Width: 2, Height: 2, Logits: []float32{1, -1, -1, 1},
			X: -8, Y: -5.5, StepX: 0.0625, StepY: 0.0625,
		},
	}}
	o := newOracle(t, 2, 2, 1)
	seen := run(t, open(t, &tile.Tiled{Predictor: o, Tile: 64, Overlap: 0.25, WholeImage: true}), o.img(200, 150, engine.BGR, object))
	require.Len(t, seen[0].Detections, 1)
	got := seen[0].Detections[0]
	object.Score = got.Score
	require.Equal(t, object, got)
}

// disc is an object of the shape of an ellipse, with a mask whose grid is coarser than the pixels, and a keypoint at either end.
func disc(bounds image.Rectangle, step float32) postprocess.Detection {
	m := &postprocess.Mask{
		Bounds: bounds, Width: int(float32(bounds.Dx())*step) + 2, Height: int(float32(bounds.Dy())*step) + 2,
		X: -float32(bounds.Min.X) * step, Y: -float32(bounds.Min.Y) * step, StepX: step, StepY: step,
	}
	for row := range m.Height {
		for column := range m.Width {
			x := 2*(float32(column)/step+0.5)/float32(bounds.Dx()) - 1
			y := 2*(float32(row)/step+0.5)/float32(bounds.Dy()) - 1
			m.Logits = append(m.Logits, 4*(1-x*x-y*y))
		}
	}
	b := postprocess.Box{X1: float32(bounds.Min.X), Y1: float32(bounds.Min.Y), X2: float32(bounds.Max.X), Y2: float32(bounds.Max.Y)}
	return postprocess.Detection{Box: b, Detail: &postprocess.Detail{Mask: m, Keypoints: []postprocess.Keypoint{
		{X: b.X1, Y: (b.Y1 + b.Y2) / 2}, {X: b.X2, Y: (b.Y1 + b.Y2) / 2},
	}}}
}

// sharp shows a keypoint well only to the views that hold it.
type sharp struct{ *oracle }

func (s sharp) Wait(slot int) (*predict.BatchResult, error) {
	before := len(s.parts)
	r, err := s.oracle.Wait(slot)
	for i := range r.Results {
		part := s.parts[before+i]
		for j := range r.Results[i].Detections {
			points := r.Results[i].Detections[j].Detail.Keypoints
			for k := range points {
				if points[k].Score = 0.9; points[k].X < 0 || points[k].X >= float32(part.Dx()) {
					points[k] = postprocess.Keypoint{Score: 0.1} // somewhere
				}
			}
		}
	}
	return r, err
}

// TestAnObjectThatEveryBorderCutsIsPutTogether: its box is the whole one, its mask has the pixels of all pieces and each keypoint is from a
// view that shows it.
func TestAnObjectThatEveryBorderCutsIsPutTogether(t *testing.T) {
	const width, height = 260, 210
	random := rand.New(rand.NewPCG(17, 3))
	for n := range 60 {
		w, h := 70+random.IntN(120), 70+random.IntN(100) // larger than a tile
		x, y := random.IntN(width-w), random.IntN(height-h)
		object := disc(image.Rect(x, y, x+w, y+h), []float32{0.25, 0.5, 0.125}[n%3])
		o := newOracle(t, 4, 2, uint64(n))
		tiled := open(t, &tile.Tiled{Predictor: sharp{o}, Tile: 64, Overlap: 0.3})
		seen := run(t, tiled, o.img(width, height, engine.BGR, object))
		require.Len(t, seen[0].Detections, 1)
		got := seen[0].Detections[0]
		require.Equal(t, object.Box, got.Box)
		iou := got.Detail.Mask.AppendRuns(nil, width, height).IoU(object.Detail.Mask.AppendRuns(nil, width, height), false)
		require.Greater(t, iou, 0.99, "object %d at %v", n, object.Box)
		for k, point := range got.Detail.Keypoints {
			require.InDelta(t, object.Detail.Keypoints[k].Y, point.Y, 0.5)
			require.InDelta(t, object.Detail.Keypoints[k].X, point.X, 0.5)
		}
	}
}

func TestAImageNoLargerThanATileIsOneView(t *testing.T) {
	o := newOracle(t, 2, 2, 1)
	tiled := open(t, &tile.Tiled{Predictor: o, Tile: 64, Overlap: 0.2, WholeImage: true})
	seen := run(t, tiled, o.img(64, 40, engine.NV12, postprocess.Detection{Box: postprocess.Box{X1: 1, Y1: 2, X2: 63, Y2: 30}}))
	require.Len(t, seen[0].Detections, 1)
	require.Equal(t, []image.Rectangle{image.Rect(0, 0, 64, 40)}, o.parts)
}

// TestABadImageFailsAlone: of one request two are no images, and one shows what it shows.
func TestABadImageFailsAlone(t *testing.T) {
	o := newOracle(t, 3, 2, 1)
	tiled := open(t, &tile.Tiled{Predictor: o, Tile: 64, Overlap: 0.2, WholeImage: true})
	good := o.img(100, 80, engine.BGR, objects(rand.New(rand.NewPCG(1, 1)), 5, 1, 100, 80, 9)...)
	seen := run(t, tiled, engine.Image{Width: 8, Height: 8, Stride: 8, Format: engine.NV12},
		engine.Image{Width: 9, Height: 9, Stride: 1}, good)
	require.ErrorIs(t, seen[0].Err, engine.ErrShape)
	require.ErrorIs(t, seen[1].Err, engine.ErrShape)
	require.NoError(t, seen[2].Err)
	require.Len(t, seen[2].Detections, 5)
}

// TestAFailedRequestLeavesNothingInFlight: the next one runs.
func TestAFailedRequestLeavesNothingInFlight(t *testing.T) {
	o := newOracle(t, 1, 3, 1)
	tiled := open(t, &tile.Tiled{Predictor: o, Tile: 64, Overlap: 0.2})
	img := o.img(300, 200, engine.BGR, postprocess.Detection{Box: postprocess.Box{X1: 70, Y1: 70, X2: 80, Y2: 80}})
	o.fail = errors.New("out of order")
	_, err := predict.Run(tiled, img)
	require.ErrorIs(t, err, o.fail)
	o.fail = nil
	require.Len(t, run(t, tiled, img)[0].Detections, 1)

	require.ErrorIs(t, tiled.Submit(1, []engine.Image{img}), engine.ErrShape)
	require.ErrorIs(t, tiled.Submit(0, nil), engine.ErrShape)
	_, err = tiled.Wait(0)
	require.EqualError(t, err, "oracle wait: slot 0 has no request in flight, submit one first")
	require.NoError(t, tiled.Submit(0, []engine.Image{img}))
	require.ErrorContains(t, tiled.Submit(0, []engine.Image{img}), "has a request in flight")
	result, err := tiled.Wait(0)
	require.NoError(t, err)
	require.Positive(t, result.Timing.Done-result.Timing.Submitted)
	require.NoError(t, tiled.Close())
	require.True(t, o.closed)
}

func TestSettings(t *testing.T) {
	require.EqualError(t, (&tile.Tiled{Predictor: newOracle(t, 1, 1, 1), Tile: 64, Merge: "vote"}).Open(),
		`merging tiles by "vote", must be nms or wbf`)
	for _, c := range []struct {
		side    int
		overlap float64
		task    engine.Task
		err     string
	}{
		{640, 0.2, engine.Segment, ""},
		{641, 0.2, engine.Detect, "tiles of 641 pixels, must be an even number from 32 to 32768"},
		{16, 0.2, engine.Detect, "tiles of 16 pixels, must be an even number from 32 to 32768"},
		{640, 0.8, engine.Detect, "tiles that overlap by 0.8, must be 0 to 0.75"},
		{640, math.NaN(), engine.Detect, "tiles that overlap by NaN, must be 0 to 0.75"},
		{640, 0.2, engine.Classify, "model oracle.onnx is for classify, tiles need a detector (use it without tiles)"},
	} {
		o := newOracle(t, 1, 1, 1)
		o.task = c.task
		if err := (&tile.Tiled{Predictor: o, Tile: c.side, Overlap: c.overlap}).Open(); c.err == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.err)
		}
	}
}
