package ensemble

import (
	"image"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// spotter is a predictor that finds the box around all white pixels, a mask of them and the first and last of 17 keypoints at its corners.
type spotter struct {
	requests []image.Point
	result   predict.BatchResult
	points   int
}

func (*spotter) Model() predict.Model        { return predict.Model{Model: engine.Model{MaxBatch: 3}} }
func (*spotter) Slots() int                  { return 1 }
func (*spotter) Tune(predict.Decoding) error { return nil }
func (*spotter) Close() error                { return nil }
func (*spotter) Alloc(size int) (*engine.Buffer, error) {
	return &engine.Buffer{Data: make([]byte, size)}, nil
}

func (s *spotter) Submit(_ int, images []engine.Image) error {
	s.result.Results = s.result.Results[:0]
	for i := range images {
		p := &images[i]
		s.requests = append(s.requests, image.Pt(p.Width, p.Height))
		if err := p.Check(); err != nil || p.Format != engine.BGR {
			s.result.Results = append(s.result.Results, predict.Result{Err: err})
			continue
		}
		seen, logits := image.Rectangle{}, []float32{}
		for y := range p.Height {
			for x := range p.Width {
				logit := float32(-4)
				if p.Data[y*p.Stride+3*x] == 255 {
					logit = 4
					seen = seen.Union(image.Rect(x, y, x+1, y+1))
				}
				logits = append(logits, logit)
			}
		}
		f := postprocess.Detection{Score: 0.8, Box: postprocess.Box{
			X1: float32(seen.Min.X), Y1: float32(seen.Min.Y), X2: float32(seen.Max.X), Y2: float32(seen.Max.Y),
		}}
		mask := postprocess.Mask{Bounds: seen, Width: p.Width, Height: p.Height, Logits: logits, StepX: 1, StepY: 1}
		f.Detail = &postprocess.Detail{Mask: &mask}
		for range s.points {
			f.Detail.Keypoints = append(f.Detail.Keypoints, postprocess.Keypoint{X: f.X1, Y: f.Y1, Score: 1})
		}
		s.result.Results = append(s.result.Results, predict.Result{Detections: []postprocess.Detection{f}})
	}
	return nil
}

func (s *spotter) Wait(int) (*predict.BatchResult, error) { return &s.result, nil }

// image has a white rectangle on black.
func img(width, height int, white image.Rectangle) engine.Image {
	p := engine.Image{Width: width, Height: height, Stride: 3*width + 5, Format: engine.BGR}
	p.Data = make([]byte, p.Stride*height)
	for y := white.Min.Y; y < white.Max.Y; y++ {
		for i := 3 * white.Min.X; i < 3*white.Max.X; i++ {
			p.Data[y*p.Stride+i] = 255
		}
	}
	return p
}

// TestLooksComeBackToTheImage: mirrored and smaller, with masks and keypoints, every look finds the same place.
func TestLooksComeBackToTheImage(t *testing.T) {
	s := &spotter{}
	a := &Augmented{Predictor: s, Views: []View{{Flip: true}, {Scale: 0.5}, {Flip: true, Scale: 0.8}}}
	require.NoError(t, a.Open())
	white := image.Rect(3, 2, 9, 6)
	require.NoError(t, a.Submit(0, []engine.Image{img(20, 11, white), {}, img(12, 10, white)}))
	result, err := a.Wait(0)
	require.NoError(t, err)
	require.Equal(t, []image.Point{{20, 11}, {20, 11}, {40, 22}, {25, 14}}, s.requests[:4])
	require.Error(t, result.Results[1].Err)
	for i, size := range map[int]image.Point{0: {20, 11}, 2: {12, 10}} {
		require.NoError(t, result.Results[i].Err)
		require.Len(t, result.Results[i].Detections, 1)
		f := &result.Results[i].Detections[0]
		require.InDelta(t, 0.8, f.Score, 1e-6)
		for k, side := range []float32{f.X1, f.Y1, f.X2, f.Y2} {
			require.InDelta(t, []float32{3, 2, 9, 6}[k], side, 1e-4)
		}
		runs := f.Detail.Mask.AppendRuns(nil, size.X, size.Y)
		require.Equal(t, 24, runs.Area())
		want := (&postprocess.Mask{
			Bounds: white, Width: 1, Height: 1, Logits: []float32{1}, StepX: 1, StepY: 1,
		}).AppendRuns(nil, size.X, size.Y)
		require.Equal(t, want, runs)
	}
}

func TestMirroredKeypoints(t *testing.T) {
	points := make([]postprocess.Keypoint, 17)
	for i := range points {
		points[i].X = float32(i)
	}
	skeleton := postprocess.NewSkeleton(postprocess.PersonKeypoints())
	require.NoError(t, mirrorKeypoints(&postprocess.Detail{Keypoints: points, Skeleton: skeleton}, 100))
	require.Equal(t, float32(100), points[0].X, "the nose")
	require.Equal(t, float32(98), points[1].X, "the left eye is where the right one was seen")
	s := &spotter{points: 5}
	a := &Augmented{Predictor: s, Views: []View{{Flip: true}}}
	require.NoError(t, a.Open())
	require.NoError(t, a.Submit(0, []engine.Image{img(20, 10, image.Rect(1, 1, 3, 3))}))
	result, err := a.Wait(0)
	require.NoError(t, err)
	require.ErrorIs(t, result.Results[0].Err, errFlip)
}

func TestLooksThatCannotBe(t *testing.T) {
	a := &Augmented{Predictor: &spotter{}, Views: []View{{Scale: 2}}}
	require.EqualError(t, a.Open(), "scale 2, must be 0.25 to 1 (tiles make images larger)")
	for text, want := range map[string]string{
		"rotate": `"rotate" must be flip, scale=0.83 or flip+scale=0.83`, "flip+flip": `"flip+flip" must be flip, scale=0.83 or flip+scale=0.83`,
		"scale=x": `scale "x" is no number from 0.25 to 1`, "scale=0": `scale "0" is no number from 0.25 to 1`,
		"scale=0.1": "scale 0.1, must be 0.25 to 1 (tiles make images larger)",
	} {
		_, err := ParseView(text)
		require.EqualError(t, err, want)
	}
	look, err := ParseView("flip+scale=0.5")
	require.NoError(t, err)
	require.Equal(t, View{Flip: true, Scale: 0.5}, look)
}

// sample is a pixel of an image whose pixels share colours: luma and both colours.
func sample(p *engine.Image, x, y int) [3]byte {
	if p.Format == engine.YUYV {
		pair := p.Data[y*p.Stride+x/2*4:]
		return [3]byte{pair[x%2*2], pair[1], pair[3]}
	}
	colours := p.Data[p.Stride*(p.Height+y/2)+x&^1:]
	return [3]byte{p.Data[y*p.Stride+x], colours[0], colours[1]}
}

// TestLooksOfImagesThatShareColours: every pixel is where it belongs, with its colour, and what is around has none.
func TestLooksOfImagesThatShareColours(t *testing.T) {
	const width, height = 14, 8
	for _, format := range []engine.PixelFormat{engine.NV12, engine.YUYV} {
		from := engine.Image{Width: width, Height: height, Stride: format.RowBytes(width) + 6, Format: format}
		from.Data = make([]byte, from.Stride*format.Rows(height))
		for i := range from.Data {
			from.Data[i] = byte(i * 37 >> 1)
		}
		a := &Augmented{Predictor: &spotter{}}
		for number, look := range []View{{Flip: true}, {Scale: 0.6}, {Flip: true, Scale: 0.6}} {
			to, err := a.draw(number, look, &from)
			require.NoError(t, err)
			require.NoError(t, to.Check())
			for y := range to.Height {
				for x := range to.Width {
					want := [3]byte{grey, colourless, colourless}
					switch {
					case x < width && y < height && look.Flip:
						want = sample(&from, width-1-x, y)
					case x < width && y < height:
						want = sample(&from, x, y)
					}
					require.Equal(t, want, sample(&to, x, y), "%v of %v at %d, %d", look, format, x, y)
				}
			}
		}
	}
}
