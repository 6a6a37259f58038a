package enginetest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// scene returns a BGR picture with smooth colours and some noise.
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

// copied returns the picture in memory of the engine.
func copied(t testing.TB, e engine.Engine, im engine.Image) engine.Image {
	buffer, err := e.Alloc(len(im.Data))
	require.NoError(t, err)
	t.Cleanup(buffer.Free)
	copy(buffer.Data, im.Data)
	im.Data = buffer.Data
	return im
}

// sampled computes what the picture networks answer: pixel (8x+5, 8y+3) of the letterboxed picture as R, G, B planes, in 0..1. It is the
// plain definition of a bilinear letterbox, without any backend's arithmetic.
func sampled(im engine.Image, width, height int, tr engine.Transform) []float64 {
	var out []float64
	for c := range 3 {
		for y := 3; y < height; y += 8 {
			for x := 5; x < width; x += 8 {
				out = append(out, letterboxed(im, x, y, 2-c, tr)/255)
			}
		}
	}
	return out
}

func letterboxed(im engine.Image, x, y, channel int, tr engine.Transform) float64 {
	sx, sy := float64(float32(x)+0.5-tr.PadX)/float64(tr.ScaleX), float64(float32(y)+0.5-tr.PadY)/float64(tr.ScaleY)
	if sx < 0 || sy < 0 || sx > float64(im.Width) || sy > float64(im.Height) {
		return 114
	}
	x0, fx := math.Floor(sx-0.5), sx-0.5-math.Floor(sx-0.5)
	y0, fy := math.Floor(sy-0.5), sy-0.5-math.Floor(sy-0.5)
	at := func(x, y float64) float64 {
		column, row := int(min(max(x, 0), float64(im.Width-1))), int(min(max(y, 0), float64(im.Height-1)))
		return float64(im.Data[row*im.Stride+3*column+channel])
	}
	return (at(x0, y0)*(1-fx)+at(x0+1, y0)*fx)*(1-fy) + (at(x0, y0+1)*(1-fx)+at(x0+1, y0+1)*fx)*fy
}

// position returns a copy of one batch position of an output.
func position(t testing.TB, out *engine.Tensor, i int) []byte {
	require.Positive(t, out.Shape[0])
	size := len(out.Data) / int(out.Shape[0])
	return slices.Clone(out.Data[i*size : (i+1)*size])
}
