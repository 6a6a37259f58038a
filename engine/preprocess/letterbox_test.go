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

func img(format engine.PixelFormat, width, height int, seed uint64) engine.Image {
	stride := format.RowBytes(width)
	im := engine.Image{Data: make([]byte, stride*format.Rows(height)), Width: width, Height: height, Stride: stride, Format: format}
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range im.Data {
		im.Data[i] = byte(random.Uint32())
	}
	return im
}

func input(width, height, channels int, t engine.DataType) *engine.ImageInput {
	return &engine.ImageInput{Type: t, Channels: channels, Width: width, Height: height}
}

// decode converts the image with OpenCV to BGR, or to gray for inputs of one channel.
func decode(t testing.TB, im engine.Image, channels int) gocv.Mat {
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
	if k.code >= 0 {
		bgr := gocv.NewMat()
		require.NoError(t, gocv.CvtColor(mat, &bgr, k.code))
		mat.Close()
		mat = bgr
	}
	if channels == 1 {
		gray := gocv.NewMat()
		require.NoError(t, gocv.CvtColor(mat, &gray, gocv.ColorBGRToGray))
		mat.Close()
		mat = gray
	}
	return mat
}

// reference is the letterbox of OpenCV: cvtColor, resize, copyMakeBorder; levels as planes R, G, B or gray.
func reference(t testing.TB, im engine.Image, in *engine.ImageInput) []byte {
	mat := decode(t, im, in.Channels)
	defer mat.Close()
	g := preprocess.Fit(im.Width, im.Height, in)
	small, boxed := gocv.NewMat(), gocv.NewMat()
	defer small.Close()
	defer boxed.Close()
	require.NoError(t, gocv.Resize(mat, &small, image.Pt(g.InnerWidth, g.InnerHeight), 0, 0, gocv.InterpolationLinear))
	pad := color.RGBA{R: engine.DefaultPad, G: engine.DefaultPad, B: engine.DefaultPad}
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
		switch t {
		case engine.Float16:
			values[i] = half(binary.LittleEndian.Uint16(output[2*i:]))
		case engine.Uint8:
			values[i] = float64(output[i])
		default:
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(output[4*i:])))
		}
	}
	return values
}

func half(bits uint16) float64 {
	sign, exponent, mantissa := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(mantissa, -24)
	case 31:
		return math.NaN()
	}
	return sign * math.Ldexp(1024+mantissa, exponent-25)
}

// run letterboxes into memory that is full of NaN, so that an element left out shows.
func run(t testing.TB, l *preprocess.Letterbox, im engine.Image, in *engine.ImageInput) []byte {
	words := make([]uint64, (in.ImageBytes()+7)/8)
	output := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), in.ImageBytes())
	for i := range output {
		output[i] = 0xff
	}
	_, err := l.Run(&im, output, preprocess.Geometry{})
	require.NoError(t, err)
	return output
}

// compare returns the largest difference in levels and the share of elements that differ at all.
func compare(t testing.TB, im engine.Image, in *engine.ImageInput) (worst, share float64) {
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
	sizes := []struct{ width, height, inputWidth, inputHeight int }{
		{1920, 1080, 640, 640},
		{1280, 720, 640, 640},
		{640, 480, 640, 640},
		{640, 640, 640, 640},
		{320, 240, 640, 640},
		{100, 1000, 320, 320},
		{1000, 36, 320, 320},
		{2, 2, 64, 64},
		{34, 18, 416, 416},
		{642, 482, 416, 320},
		{1280, 1280, 640, 640},
	}
	for _, format := range formats {
		for _, size := range sizes {
			for _, channels := range []int{3, 1} {
				for _, kind := range []engine.DataType{engine.Float32, engine.Float16} {
					if size.inputWidth == 640 && (channels == 1 || kind == engine.Float16 || format != engine.BGR) {
						continue // the small inputs show it as well, in less time
					}
					name := fmt.Sprintf("%v %dx%d to %dx%dx%d %v", format, size.width, size.height, channels, size.inputWidth, size.inputHeight, kind)
					im := img(format, size.width, size.height, 7)
					worst, share := compare(t, im, input(size.inputWidth, size.inputHeight, channels, kind))
					assert.LessOrEqual(t, worst, 1.0, name)
					assert.LessOrEqual(t, share, 0.02, name)
				}
			}
		}
	}
}

// Every small size, so that each end of a row and each missing neighbour occurs.
func TestSmallImagesEqualOpenCV(t *testing.T) {
	for width := 1; width <= 36; width += 1 + width/12 {
		for height := 1; height <= 36; height += 1 + height/6 {
			for _, format := range formats {
				if (format == engine.NV12 || format == engine.YUYV) && (width%2 != 0 || height%2 != 0) {
					continue
				}
				in := input(16+width%7, 16+height%5, 3, engine.Float32)
				worst, _ := compare(t, img(format, width, height, uint64(width*100+height)), in)
				assert.LessOrEqual(t, worst, 1.0, "%v %dx%d", format, width, height)
			}
		}
	}
}

func TestStrideIsFollowed(t *testing.T) {
	for _, format := range formats {
		in := input(64, 64, 3, engine.Float32)
		tight := img(format, 50, 30, 3)
		wide := tight
		wide.Stride += 13
		wide.Data = make([]byte, wide.Stride*format.Rows(wide.Height))
		for y := range format.Rows(wide.Height) {
			copy(wide.Data[y*wide.Stride:], tight.Data[y*tight.Stride:(y+1)*tight.Stride])
		}
		wide.Data = wide.Data[:len(wide.Data)-13]
		assert.Equal(t, run(t, preprocess.NewLetterbox(in), tight, in), run(t, preprocess.NewLetterbox(in), wide, in), format)
	}
}

func TestBorderIsKept(t *testing.T) {
	in := input(64, 64, 3, engine.Float32)
	l := preprocess.NewLetterbox(in)
	first, second := img(engine.BGR, 100, 50, 1), img(engine.BGR, 100, 50, 2)
	output := run(t, l, first, in)
	drawn := preprocess.Fit(100, 50, in)
	g, err := l.Run(&second, output, drawn)
	require.NoError(t, err)
	assert.Equal(t, drawn, g)
	assert.Equal(t, run(t, l, second, in), output)
	// Another geometry draws its border whatever lies there.
	third := img(engine.BGR, 50, 100, 3)
	_, err = l.Run(&third, output, drawn)
	require.NoError(t, err)
	assert.Equal(t, run(t, l, third, in), output)
}

func TestManySizes(t *testing.T) {
	in := input(32, 32, 3, engine.Float32)
	l := preprocess.NewLetterbox(in)
	for range 2 {
		for width := 1; width < 60; width++ {
			im := img(engine.BGR, width, 20, 1)
			require.Equal(t, run(t, preprocess.NewLetterbox(in), im, in), run(t, l, im, in), width)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	in := input(64, 64, 3, engine.Float32)
	l := preprocess.NewLetterbox(in)
	im := img(engine.BGR, 10, 10, 1)
	_, err := l.Run(&im, make([]byte, in.ImageBytes()-1), preprocess.Geometry{})
	require.EqualError(t, err, "submit: 49151 bytes for an input of 49152")
	require.ErrorIs(t, err, engine.ErrShape)
	im.Stride = 29
	_, err = l.Run(&im, make([]byte, in.ImageBytes()), preprocess.Geometry{})
	require.EqualError(t, err, "submit: row stride of 29 bytes, BGR at width 10 needs 30")
}

func TestNoAllocations(t *testing.T) {
	in := input(160, 160, 3, engine.Float32)
	l := preprocess.NewLetterbox(in)
	im := img(engine.NV12, 320, 240, 1)
	output := run(t, l, im, in)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := l.Run(&im, output, preprocess.Geometry{}); err != nil {
			t.Error(err)
		}
	}))
}

func FuzzLetterbox(f *testing.F) {
	f.Add(uint16(1920), uint16(1080), uint8(0), uint16(640), uint16(640), uint8(0), true, false)
	f.Add(uint16(1), uint16(1), uint8(4), uint16(1), uint16(1), uint8(3), false, true)
	f.Add(uint16(64), uint16(2), uint8(2), uint16(33), uint16(31), uint8(1), true, true)
	f.Fuzz(func(t *testing.T, width, height uint16, format uint8, inputWidth, inputHeight uint16, padding uint8, colour, half bool) {
		in := input(1+int(inputWidth)%300, 1+int(inputHeight)%300, 1, engine.Float32)
		if colour {
			in.Channels = 3
		}
		if half {
			in.Type = engine.Float16
		}
		im := engine.Image{Width: 1 + int(width)%2000, Height: 1 + int(height)%2000, Format: formats[int(format)%len(formats)]}
		im.Stride = im.Format.RowBytes(im.Width) + int(padding)
		im.Data = make([]byte, im.Stride*(im.Format.Rows(im.Height)-1)+im.Format.RowBytes(im.Width))
		if im.Check() != nil {
			t.Skip("odd sides")
		}
		for _, level := range elements(run(t, preprocess.NewLetterbox(in), im, in), in.Type) {
			if !(level >= 0 && level <= 1) {
				t.Fatalf("level %v", level)
			}
		}
	})
}
