package preprocess_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// kernel is the filter of an interpolation: the weight of a sample at that distance, in output pixels of a smaller image and in source
// pixels of a larger one.
func kernel(by engine.Interpolation, x float64) float64 {
	x = math.Abs(x)
	switch {
	case by != engine.BicubicAntialias:
		return max(1-x, 0)
	case x < 1:
		return 1.5*x*x*x - 2.5*x*x + 1
	case x < 2:
		return -.5*x*x*x + 2.5*x*x - 4*x + 2
	}
	return 0
}

// shares is how much each sample of an axis counts for position i of the resized image.
func shares(i, source, inner int, by engine.Interpolation) []float64 {
	ratio := float64(source) / float64(inner)
	centre, scale := (float64(i)+.5)*ratio, max(ratio, 1)
	if by == engine.Bilinear {
		scale = 1
	}
	weights, sum := make([]float64, source), 0.0
	for x := range weights {
		weights[x] = kernel(by, (float64(x)+.5-centre)/scale)
		sum += weights[x]
	}
	for x := range weights {
		weights[x] /= sum
		if by != engine.Bilinear {
			weights[x] = math.Round(weights[x]*(1<<22)) / (1 << 22) // what decides ties
		}
	}
	return weights
}

// slow computes what the input should hold straight from the description: levels by [channel][y][x] of the input.
func slow(t testing.TB, im engine.Image, in *engine.ImageInput) func(c, y, x int) float64 {
	mat := decode(t, im, in.Channels)
	defer mat.Close()
	samples, g, by := mat.ToBytes(), preprocess.Fit(im.Width, im.Height, in), in.Interpolation()
	round := func(v float64) float64 {
		if by == engine.Bilinear {
			return v
		}
		return math.Floor(min(max(v, 0), 255) + .5) // antialiased images are stored between the steps
	}
	return func(c, y, x int) float64 {
		column, row := x-g.Left, y-g.Top
		if column < 0 || row < 0 || column >= g.InnerWidth || row >= g.InnerHeight {
			return float64(in.Pad())
		}
		if in.Preprocess.Colour != engine.BGRColour {
			c = in.Channels - 1 - c
		}
		across, down, sum := shares(column, im.Width, g.InnerWidth, by), shares(row, im.Height, g.InnerHeight, by), 0.0
		for v, share := range down {
			if share == 0 {
				continue
			}
			line := 0.0
			for u, w := range across {
				line += w * float64(samples[(v*im.Width+u)*in.Channels+c])
			}
			sum += share * round(line)
		}
		return math.Floor(min(max(sum, 0), 255) + .5)
	}
}

// randomInput draws any way that a network may want its images.
func randomInput(random *rand.Rand) (*engine.ImageInput, error) {
	pick := func(n int) int { return random.IntN(n) }
	said := engine.Preprocess{
		Resize:        []engine.Resize{engine.Letterbox, engine.LetterboxTopLeft, engine.Stretch, engine.Crop}[pick(4)],
		Interpolation: []engine.Interpolation{"", engine.Bilinear, engine.BilinearAntialias, engine.BicubicAntialias}[pick(4)],
	}
	if said.Resize == engine.Crop {
		said.ShorterSide = pick(2) * (10 + pick(40))
	}
	if pick(2) == 0 {
		level := pick(256)
		said.Pad = &level
	}
	channels, height, width := int64(1+2*pick(2)), int64(1+pick(40)), int64(4+pick(40))
	shape := []int64{-1, channels, height, width}
	if pick(2) == 0 {
		shape, said.Layout = []int64{-1, height, width, channels}, engine.NHWC
	}
	if channels == 3 && pick(2) == 0 {
		said.Colour = engine.BGRColour
	}
	kind := []engine.DataType{engine.Float32, engine.Float16, engine.Uint8}[pick(3)]
	if kind != engine.Uint8 {
		said.Range = [][]float64{{0, 1}, {0, 255}, {-1, 1}}[pick(3)]
		if pick(2) == 0 {
			said.Mean = []float64{.485, .456, .406}[:channels]
			said.Deviation = []float64{.229, .224, .225}[:channels]
		}
	}
	return engine.FindImageInput([]engine.TensorInfo{{Name: "x", Type: kind, Shape: shape}}, engine.Metadata{Preprocess: said})
}

// Every rule, interpolation, colour, range, type and layout, in any combination, is what its description says.
func TestEveryWayEqualsTheReference(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	differ, elements := map[engine.Interpolation]int{}, map[engine.Interpolation]int{}
	for n := range 200 {
		in, err := randomInput(random)
		require.NoError(t, err)
		format := formats[n%len(formats)]
		im := img(format, 2*(1+random.IntN(40)), 2*(1+random.IntN(40)), uint64(n))
		name := fmt.Sprintf("%v %dx%d to %v %dx%d: %v", format, im.Width, im.Height, in.Type, in.Width, in.Height, in.Preprocess)
		got, want := elementAt(in, run(t, preprocess.NewLetterbox(in), im, in)), slow(t, im, in)
		scale, bias := in.Affine()
		for c := range in.Channels {
			for y := range in.Height {
				for x := range in.Width {
					// A step of binary16 near the largest number is a part of a level.
					limit := map[engine.DataType]float64{engine.Float32: 1e-3, engine.Float16: .26}[in.Type]
					level := (got(c, y, x) - float64(bias[c])) / float64(scale[c])
					whole := math.Round(level)
					require.InDelta(t, whole, level, limit, "%s: element %d,%d,%d is not a level", name, c, y, x)
					off := math.Abs(whole - want(c, y, x))
					require.LessOrEqual(t, off, 1.0, "%s: element %d,%d,%d is level %v, not %v", name, c, y, x, whole, want(c, y, x))
					elements[in.Interpolation()]++
					if off > 0 {
						differ[in.Interpolation()]++
					}
				}
			}
		}
	}
	t.Logf("%v of %v elements differ, by one level", differ, elements)
	require.Len(t, elements, 3)
	assert.Zero(t, differ[engine.BilinearAntialias])
	assert.Less(t, float64(differ[engine.BicubicAntialias]), .001*float64(elements[engine.BicubicAntialias]), "weights in single precision")
	assert.Less(t, float64(differ[engine.Bilinear]), .1*float64(elements[engine.Bilinear]), "OpenCV's arithmetic cuts off now and then")
}

// elementAt finds the elements of an output by channel, row and column.
func elementAt(in *engine.ImageInput, output []byte) func(c, y, x int) float64 {
	values := elements(output, in.Type)
	return func(c, y, x int) float64 {
		if in.Interleaved {
			return values[(y*in.Width+x)*in.Channels+c]
		}
		return values[(c*in.Height+y)*in.Width+x]
	}
}
