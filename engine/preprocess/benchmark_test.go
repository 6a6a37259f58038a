package preprocess_test

import (
	"fmt"
	"image"
	"image/color"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// openCV is the usual chain on one thread with all memory kept: resize, copyMakeBorder, and what blobFromImage does with its result:
// conversion to float with the scale, then one plane per channel with red and blue swapped.
type openCV struct {
	g                       preprocess.Geometry
	source                  gocv.Mat
	small, boxed, converted gocv.Mat
	planes                  [3]gocv.Mat
}

func newOpenCV(b *testing.B, im engine.Image, in *engine.ImageInput) *openCV {
	gocv.SetNumThreads(1)
	source, err := gocv.NewMatFromBytes(im.Height, im.Width, gocv.MatTypeCV8UC3, im.Data)
	require.NoError(b, err)
	o := &openCV{
		g: preprocess.Fit(im.Width, im.Height, in), source: source,
		small: gocv.NewMat(), boxed: gocv.NewMat(), converted: gocv.NewMat(), planes: [3]gocv.Mat{gocv.NewMat(), gocv.NewMat(), gocv.NewMat()},
	}
	b.Cleanup(func() {
		for _, mat := range []gocv.Mat{o.source, o.small, o.boxed, o.converted, o.planes[0], o.planes[1], o.planes[2]} {
			mat.Close()
		}
	})
	return o
}

func (o *openCV) run(b *testing.B) {
	g := o.g
	require.NoError(b, gocv.Resize(o.source, &o.small, image.Pt(g.InnerWidth, g.InnerHeight), 0, 0, gocv.InterpolationLinear))
	require.NoError(b, gocv.CopyMakeBorder(o.small, &o.boxed, g.Top, g.Height-g.Top-g.InnerHeight, g.Left, g.Width-g.Left-g.InnerWidth,
		gocv.BorderConstant, color.RGBA{R: engine.DefaultPad, G: engine.DefaultPad, B: engine.DefaultPad}))
	require.NoError(b, o.boxed.ConvertToWithParams(&o.converted, gocv.MatTypeCV32FC3, 1.0/255, 0))
	for c := range 3 {
		require.NoError(b, gocv.ExtractChannel(o.converted, &o.planes[2-c], c))
	}
}

// BenchmarkAgainstOpenCV interleaves both in one run and reports the median of the rounds' ratios, for the whole output and for a frame
// whose border is in place already.
func BenchmarkAgainstOpenCV(b *testing.B) {
	for _, size := range [][2]int{{1920, 1080}, {1280, 720}, {640, 480}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			in := input(640, 640, 3, engine.Float32)
			im := img(engine.BGR, size[0], size[1], 1)
			reference := newOpenCV(b, im, in)
			l := preprocess.NewLetterbox(in)
			output := make([]byte, in.ImageBytes())
			geometry := preprocess.Geometry{}
			ours := func() {
				for range 10 {
					_, err := l.Run(&im, output, geometry)
					require.NoError(b, err)
				}
			}
			theirs := func() {
				for range 10 {
					reference.run(b)
				}
			}
			ours()
			theirs()
			var whole, inner, times []float64
			for b.Loop() {
				geometry = preprocess.Geometry{}
				a := duration(ours) + duration(ours)
				o := duration(theirs) + duration(theirs)
				geometry = reference.g
				p := duration(ours) + duration(ours)
				whole, inner, times = append(whole, a/o), append(inner, p/o), append(times, a/20)
			}
			b.ReportMetric(median(whole), "ratio")
			b.ReportMetric(median(inner), "ratio-border-kept")
			b.ReportMetric(median(times)*1e6, "us/image")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func duration(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func BenchmarkFormats(b *testing.B) {
	for _, format := range formats {
		for _, kind := range []engine.DataType{engine.Float32, engine.Float16} {
			b.Run(fmt.Sprintf("%v/%v", format, kind), func(b *testing.B) {
				in := input(640, 640, 3, kind)
				im := img(format, 1920, 1080, 1)
				l := preprocess.NewLetterbox(in)
				output := make([]byte, in.ImageBytes())
				b.ReportAllocs()
				for b.Loop() {
					if _, err := l.Run(&im, output, preprocess.Geometry{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkPresets is what other ways of an image cost.
func BenchmarkPresets(b *testing.B) {
	for _, test := range []struct {
		preset string
		input  engine.TensorInfo
	}{
		{"ultralytics", engine.TensorInfo{Type: engine.Float32, Shape: []int64{1, 3, 640, 640}}},
		{"yolox", engine.TensorInfo{Type: engine.Float32, Shape: []int64{1, 3, 416, 416}}},
		{"nanodet", engine.TensorInfo{Type: engine.Float32, Shape: []int64{1, 3, 416, 416}}},
		{"tf-detection", engine.TensorInfo{Type: engine.Uint8, Shape: []int64{1, 320, 320, 3}}},
		{"keras", engine.TensorInfo{Type: engine.Float32, Shape: []int64{1, 224, 224, 3}}},
		{"torchvision", engine.TensorInfo{Type: engine.Float32, Shape: []int64{1, 3, 224, 224}}},
		{"timm", engine.TensorInfo{Type: engine.Float32, Shape: []int64{1, 3, 224, 224}}},
		{"rtdetr", engine.TensorInfo{Type: engine.Float32, Shape: []int64{1, 3, 640, 640}}},
	} {
		for _, format := range []engine.PixelFormat{engine.BGR, engine.NV12} {
			b.Run(fmt.Sprintf("%s/%v", test.preset, format), func(b *testing.B) {
				metadata := engine.Metadata{Preprocess: engine.Preprocess{Preset: test.preset}}
				in, err := engine.FindImageInput([]engine.TensorInfo{test.input}, metadata)
				require.NoError(b, err)
				im := img(format, 1920, 1080, 1)
				l := preprocess.NewLetterbox(in)
				output := make([]byte, in.ImageBytes())
				for b.Loop() {
					if _, err := l.Run(&im, output, preprocess.Geometry{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
