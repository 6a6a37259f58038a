package preprocess_test

import (
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

var formats = []engine.PixelFormat{engine.BGR, engine.BGRx, engine.NV12, engine.YUYV, engine.GRAY8}

func picture(format engine.PixelFormat, width, height int, seed uint64) engine.Image {
	stride := format.RowBytes(width)
	im := engine.Image{Data: make([]byte, stride*format.Rows(height)), Width: width, Height: height, Stride: stride, Format: format}
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range im.Data {
		im.Data[i] = byte(random.Uint32())
	}
	return im
}

func input(width, height, channels int, t engine.DataType) engine.PictureInput {
	return engine.PictureInput{Type: t, Channels: channels, Width: width, Height: height}
}

// reference is the letterbox of OpenCV: cvtColor, resize, copyMakeBorder; levels as planes R, G, B or gray.
func reference(t testing.TB, im engine.Image, in engine.PictureInput) []byte {
	kinds := map[engine.PixelFormat]struct {
		rows int
		kind gocv.MatType
		code gocv.ColorConversionCode
	}{
		engine.BGR: {im.Height, gocv.MatTypeCV8UC3, -1}, engine.BGRx: {im.Height, gocv.MatTypeCV8UC4, gocv.ColorBGRAToBGR},
		engine.NV12:  {im.Height * 3 / 2, gocv.MatTypeCV8UC1, gocv.ColorYUVToBGRNV12},
		engine.YUYV:  {im.Height, gocv.MatTypeCV8UC2, gocv.ColorYUVToBGRYUY2},
		engine.GRAY8: {im.Height, gocv.MatTypeCV8UC1, gocv.ColorGrayToBGR},
	}
	k := kinds[im.Format]
	mat, err := gocv.NewMatFromBytes(k.rows, im.Width, k.kind, im.Data)
	require.NoError(t, err)
	defer func() { mat.Close() }()
	if k.code >= 0 {
		bgr := gocv.NewMat()
		require.NoError(t, gocv.CvtColor(mat, &bgr, k.code))
		mat.Close()
		mat = bgr
	}
	if in.Channels == 1 {
		gray := gocv.NewMat()
		require.NoError(t, gocv.CvtColor(mat, &gray, gocv.ColorBGRToGray))
		mat.Close()
		mat = gray
	}
	g := preprocess.Fit(im.Width, im.Height, in.Width, in.Height)
	small, boxed := gocv.NewMat(), gocv.NewMat()
	defer small.Close()
	defer boxed.Close()
	require.NoError(t, gocv.Resize(mat, &small, image.Pt(g.InnerWidth, g.InnerHeight), 0, 0, gocv.InterpolationLinear))
	pad := color.RGBA{R: preprocess.PadLevel, G: preprocess.PadLevel, B: preprocess.PadLevel}
	require.NoError(t, gocv.CopyMakeBorder(small, &boxed, g.Top, in.Height-g.Top-g.InnerHeight, g.Left, in.Width-g.Left-g.InnerWidth,
		gocv.BorderConstant, pad))
	packed := boxed.ToBytes()
	planes := make([]byte, len(packed))
	size := in.Width * in.Height
	for i := range size {
		for c := range in.Channels {
			planes[c*size+i] = packed[i*in.Channels+in.Channels-1-c]
		}
	}
	return planes
}

// elements reads the output as numbers.
func elements(output []byte, t engine.DataType) []float64 {
	values := make([]float64, len(output)/t.Size())
	for i := range values {
		if t == engine.Float16 {
			values[i] = half(binary.LittleEndian.Uint16(output[2*i:]))
		} else {
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(output[4*i:])))
		}
	}
	return values
}

func half(bits uint16) float64 {
	exponent, mantissa := int(bits>>10&31), float64(bits&1023)
	if exponent == 0 {
		return math.Ldexp(mantissa, -24)
	}
	return math.Ldexp(1024+mantissa, exponent-25)
}

// run letterboxes into memory that is full of NaN, so that an element left out shows.
func run(t testing.TB, l *preprocess.Letterbox, im engine.Image, in engine.PictureInput) []byte {
	words := make([]uint64, (in.PictureBytes()+7)/8)
	output := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), in.PictureBytes())
	for i := range output {
		output[i] = 0xff
	}
	_, err := l.Run(&im, output, preprocess.Geometry{})
	require.NoError(t, err)
	return output
}

// compare returns the largest difference in levels and the share of elements that differ at all.
func compare(t testing.TB, im engine.Image, in engine.PictureInput) (worst, share float64) {
	want := reference(t, im, in)
	got := elements(run(t, preprocess.NewLetterbox(in), im, in), in.Type)
	differ := 0
	for i := range want {
		level := math.Round(got[i] * 255)
		limit := 1e-4
		if in.Type == engine.Float16 {
			limit = 0.07
		}
		if off := math.Abs(level - got[i]*255); !(off <= limit) {
			t.Fatalf("element %d is %v, not a level", i, got[i])
		}
		if d := math.Abs(level - float64(want[i])); d > 0 {
			differ++
			worst = max(worst, d)
		}
	}
	return worst, float64(differ) / float64(len(want))
}

func TestLetterboxEqualsOpenCV(t *testing.T) {
	t.Logf("instruction set %s", preprocess.InstructionSet())
	sizes := []struct{ width, height, inputWidth, inputHeight int }{
		{1920, 1080, 640, 640}, {1280, 720, 640, 640}, {640, 480, 640, 640}, {640, 640, 640, 640}, {320, 240, 640, 640},
		{100, 1000, 320, 320}, {1000, 36, 320, 320}, {2, 2, 64, 64}, {34, 18, 416, 416}, {642, 482, 416, 320}, {1280, 1280, 640, 640},
	}
	for _, format := range formats {
		for _, size := range sizes {
			for _, channels := range []int{3, 1} {
				for _, kind := range []engine.DataType{engine.Float32, engine.Float16} {
					name := fmt.Sprintf("%v %dx%d to %dx%dx%d %v", format, size.width, size.height, channels, size.inputWidth, size.inputHeight, kind)
					im := picture(format, size.width, size.height, 7)
					worst, share := compare(t, im, input(size.inputWidth, size.inputHeight, channels, kind))
					assert.LessOrEqual(t, worst, 1.0, name)
					assert.LessOrEqual(t, share, 0.02, name)
				}
			}
		}
	}
}

func BenchmarkX(b *testing.B) {
	in := input(640, 640, 3, engine.Float32)
	im := picture(engine.BGR, 1920, 1080, 1)
	l := preprocess.NewLetterbox(in)
	out := make([]byte, in.PictureBytes())
	for b.Loop() {
		l.Run(&im, out, preprocess.Geometry{})
	}
}
