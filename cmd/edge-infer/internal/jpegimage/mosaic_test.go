package jpegimage

import (
	"bytes"
	"image"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage/jpegtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// encoded returns a part of a frame as JPEG.
func encoded(t testing.TB, f *capture.Frame, hidden *pipeline.Hidden, part image.Rectangle, width int) []byte {
	t.Helper()
	var p Pixels
	part, err := p.Copy(&pipeline.Result{Frame: f, Hidden: hidden}, part)
	require.NoError(t, err)
	e := Encoder{Quality: 95, MaxWidth: width}
	defer e.Close()
	require.NoError(t, e.Load(&p, part))
	data, err := e.JPEG()
	require.NoError(t, err)
	return data
}

// TestHiddenPartsAreFlat, with every format, in the whole image, in a part of it and in a smaller image; what is not hidden stays.
func TestHiddenPartsAreFlat(t *testing.T) {
	triangle := []zone.Point{{X: 0, Y: 0}, {X: 0.5, Y: 0}, {X: 0, Y: 1}}
	box := postprocess.Box{X1: 400, Y1: 100, X2: 560, Y2: 420}
	hidden := &pipeline.Hidden{Regions: [][]zone.Point{triangle}, Boxes: []postprocess.Box{box}}
	for format := engine.BGR; format <= engine.GRAY8; format++ {
		f := jpegtest.Noise(format, 640, 480)
		whole := encoded(t, f, hidden, image.Rect(0, 0, 640, 480), 0)
		require.Less(t, jpegtest.Contrast(t, whole, image.Rect(0, 0, 150, 230)), 4.0, "%v: triangle", format)
		require.Less(t, jpegtest.Contrast(t, whole, image.Rect(400, 100, 560, 420)), 4.0, "%v: box", format)
		require.Greater(t, jpegtest.Contrast(t, whole, image.Rect(200, 300, 380, 480)), 15.0, "%v: between them", format)
		require.Greater(t, jpegtest.Contrast(t, whole, image.Rect(580, 0, 640, 480)), 15.0, "%v: right of the box", format)

		crop := encoded(t, f, hidden, image.Rect(301, 51, 601, 451), 0)
		require.Less(t, jpegtest.Contrast(t, crop, image.Rect(99, 49, 259, 369)), 4.0, "%v: box in a part", format)
		require.Greater(t, jpegtest.Contrast(t, crop, image.Rect(0, 0, 80, 400)), 15.0, "%v: beside the box in a part", format)

		small := encoded(t, f, hidden, image.Rect(0, 0, 640, 480), 320)
		require.Less(t, jpegtest.Contrast(t, small, image.Rect(200, 50, 280, 210)), 6.0, "%v: box in a smaller image", format)
	}
}

// TestHiddenDetailsDoNotMatter: images that differ in hidden details, with the same averages, become the same JPEG, byte by byte.
func TestHiddenDetailsDoNotMatter(t *testing.T) {
	const size = 64 // of the cells that 640 pixels have in a region, and of those of a box that is 160 to 256 pixels long
	region := []zone.Point{{X: 0.1, Y: 0.1}, {X: 0.5, Y: 0.2}, {X: 0.2, Y: 0.9}}
	box := postprocess.Box{X1: 390, Y1: 200, X2: 550, Y2: 420}
	hidden := &pipeline.Hidden{Regions: [][]zone.Point{region}, Boxes: []postprocess.Box{box}}
	inside := func(x, y int) bool { // well inside
		if x > 391 && x < 549 && y > 201 && y < 419 {
			return true
		}
		return x > 130 && x < 200 && y > 120 && y < 220
	}
	for _, format := range []engine.PixelFormat{engine.BGR, engine.BGRx, engine.GRAY8} {
		f := jpegtest.Noise(format, 640, 480)
		other := *f
		other.Data = slices.Clone(f.Data)
		bytesOf := format.RowBytes(1)
		random := rand.New(rand.NewPCG(5, 6))
		swapped := 0
		for range 200000 {
			x, y := random.IntN(640), random.IntN(480)
			x2, y2 := x/size*size+random.IntN(size), min(y/size*size+random.IntN(size), 479)
			if !inside(x, y) || !inside(x2, y2) {
				continue
			}
			a, b := other.Data[y*f.Stride+x*bytesOf:][:bytesOf], other.Data[y2*f.Stride+x2*bytesOf:][:bytesOf]
			for i := range a {
				a[i], b[i] = b[i], a[i]
			}
			swapped++
		}
		require.Greater(t, swapped, 10000)
		whole := image.Rect(0, 0, 640, 480)
		require.False(t, bytes.Equal(encoded(t, f, nil, whole, 0), encoded(t, &other, nil, whole, 0)), "nothing is hidden")
		for _, part := range []image.Rectangle{whole, image.Rect(320, 128, 640, 448)} { // of whole cells, whose averages are the same
			require.True(t, bytes.Equal(encoded(t, f, hidden, part, 0), encoded(t, &other, hidden, part, 0)), "%v %v", format, part)
			require.True(t, bytes.Equal(encoded(t, f, hidden, part, 200), encoded(t, &other, hidden, part, 200)), "%v %v", format, part)
		}
	}
}

// TestCellsAreLarge: an object has at most 4 cells along its longer side, whatever its size.
func TestCellsAreLarge(t *testing.T) {
	for _, length := range []int{1, 30, 64, 65, 500, 4000} {
		require.GreaterOrEqual(t, cell(length, objectCells)*objectCells, length)
		require.LessOrEqual(t, cell(length, objectCells)*objectCells, max(2*length, objectCells))
	}
}

// TestHiddenPartsBeyondTheImage, in odd shapes: nothing but the image is painted, and nothing fails.
func TestHiddenPartsBeyondTheImage(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	at := func() float32 { return float32(random.NormFloat64() * 2000) }
	for range 300 {
		x, y := at(), at()
		hidden := &pipeline.Hidden{Boxes: []postprocess.Box{
			{X1: x, Y1: y, X2: x + max(at(), 0), Y2: y + max(at(), 0)}, {X1: -1e30, X2: 1e30, Y2: 1},
		}}
		for range 2 {
			var region []zone.Point
			for range 3 + random.IntN(5) {
				region = append(region, zone.Point{X: random.Float64(), Y: random.Float64()})
			}
			hidden.Regions = append(hidden.Regions, region)
		}
		encoded(t, jpegtest.Noise(engine.BGR, 97, 61), hidden, image.Rect(random.IntN(90), random.IntN(60), 97, 61), 0)
	}
}

// BenchmarkMosaic is what 20 hidden people and a region cost the encoder of an image of 1080p.
func BenchmarkMosaic(b *testing.B) {
	var hidden pipeline.Hidden
	for i := range 20 {
		x := float32(i * 80)
		hidden.Boxes = append(hidden.Boxes, postprocess.Box{X1: x, Y1: 300, X2: x + 150, Y2: 700})
	}
	hidden.Regions = [][]zone.Point{{{}, {X: 0.5}, {X: 0.5, Y: 0.5}, {Y: 0.5}}}
	var p Pixels
	_, err := p.Copy(&pipeline.Result{Frame: jpegtest.Noise(engine.BGR, 1920, 1080), Hidden: &hidden}, image.Rect(0, 0, 1920, 1080))
	require.NoError(b, err)
	var m mosaic
	b.ReportAllocs()
	for b.Loop() {
		m.apply(p.Data, 3, &p)
	}
}
