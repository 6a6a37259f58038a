package enginetest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// scene returns a BGR image with smooth colours and some noise.
func scene(width, height int, seed uint64) engine.Image {
	random := rand.New(rand.NewPCG(seed, 0))
	im := engine.Image{Width: width, Height: height, Stride: 3*width + 5, Format: engine.BGR}
	im.Data = make([]byte, im.Stride*height)
	phase := random.Float64() * 6
	for y := range height {
		for x := range width {
			for c := range 3 {
				level := 128 + 90*math.Sin(phase+float64(x*(c+1))/31) + 20*math.Cos(float64(y)/17) + 15*random.Float64()
				im.Data[y*im.Stride+3*x+c] = uint8(min(max(level, 0), 255))
			}
		}
	}
	return im
}

// copied returns the image in memory of the engine.
func copied(t testing.TB, e engine.Engine, im engine.Image) engine.Image {
	buffer, err := e.Alloc(len(im.Data))
	require.NoError(t, err)
	t.Cleanup(buffer.Free)
	copy(buffer.Data, im.Data)
	im.Data = buffer.Data
	return im
}

// sampled computes the output of the image networks: pixel (8x+5, 8y+3) of their input, in its layout. It defines the preprocessing
// independently of any backend.
func sampled(im engine.Image, in *engine.ImageInput, tr engine.Transform) []float64 {
	scale, bias := in.Affine()
	value := func(x, y, c int) float64 {
		channel := 2 - c // of the BGR image
		if in.Preprocess.Colour == engine.BGRColour {
			channel = c
		}
		return level(im, in, x, y, channel, tr)*float64(scale[c]) + float64(bias[c])
	}
	var out []float64
	if in.Interleaved {
		for y := 3; y < in.Height; y += 8 {
			for x := 5; x < in.Width; x += 8 {
				out = append(out, value(x, y, 0), value(x, y, 1), value(x, y, 2))
			}
		}
		return out
	}
	for c := range 3 {
		for y := 3; y < in.Height; y += 8 {
			for x := 5; x < in.Width; x += 8 {
				out = append(out, value(x, y, c))
			}
		}
	}
	return out
}

// level returns the image's value at a pixel of the input: a distance-weighted average, or the padding.
func level(im engine.Image, in *engine.ImageInput, x, y, channel int, tr engine.Transform) float64 {
	sx, sy := float64(float32(x)+0.5-tr.PadX)/float64(tr.ScaleX), float64(float32(y)+0.5-tr.PadY)/float64(tr.ScaleY)
	if sx < 0 || sy < 0 || sx > float64(im.Width) || sy > float64(im.Height) {
		return float64(in.Pad())
	}
	reach := func(scale float32) float64 { // filter radius in samples
		if in.Interpolation() == engine.Bilinear {
			return 1
		}
		return max(1/float64(scale), 1)
	}
	columns, rows := shares(sx, reach(tr.ScaleX), im.Width), shares(sy, reach(tr.ScaleY), im.Height)
	sum := 0.0
	for row, r := range rows {
		for column, c := range columns {
			sum += r * c * float64(im.Data[row*im.Stride+3*column+channel])
		}
	}
	return sum
}

// shares returns the filter weights of the samples of an axis for a point: decreasing with distance, 0 beyond reach.
func shares(at, reach float64, size int) map[int]float64 {
	weights, sum := map[int]float64{}, 0.0
	for i := max(int(at-reach)-1, 0); i < min(int(at+reach)+2, size); i++ {
		if w := reach - math.Abs(float64(i)+0.5-at); w > 0 {
			weights[i] = w
			sum += w
		}
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}

// position returns a copy of one batch position of an output.
func position(t testing.TB, out *engine.Tensor, i int) []byte {
	require.Positive(t, out.Shape[0])
	size := len(out.Data) / int(out.Shape[0])
	return slices.Clone(out.Data[i*size : (i+1)*size])
}
