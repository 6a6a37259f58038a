package draw

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func at(p Image, x, y int) color.RGBA {
	i := y*p.Stride + 3*x
	return color.RGBA{p.Data[i+2], p.Data[i+1], p.Data[i], 255}
}

func blank(width, height int) Image {
	return Image{Data: make([]byte, 3*width*height), Width: width, Height: height, Stride: 3 * width}
}

func mark(x1, y1, x2, y2 float32, class int) Mark {
	return Mark{Detection: postprocess.Detection{Box: postprocess.Box{X1: x1, Y1: y1, X2: x2, Y2: y2}, Score: 0.914, Class: class}, Track: 17}
}

func TestMarksPaintBoxAndLabel(t *testing.T) {
	img := blank(640, 480)
	painter := &Painter{Labels: []string{"bolt", "nut"}}
	require.NoError(t, painter.Marks(img, []Mark{mark(100, 100, 300, 250, 1)}))
	c := Colour(1)
	for _, place := range [][2]int{{100, 100}, {299, 100}, {100, 249}, {299, 249}, {200, 101}, {101, 200}} {
		assert.Equal(t, c, at(img, place[0], place[1]), "%v", place)
	}
	for _, place := range [][2]int{{99, 101}, {300, 200}, {200, 250}, {103, 103}, {200, 180}} {
		assert.Equal(t, color.RGBA{0, 0, 0, 255}, at(img, place[0], place[1]), "%v", place)
	}
	// The label stands above the box: ground in the class colour, letters in the contrasting one.
	grounds, letters := 0, 0
	for y := 80; y < 100; y++ {
		for x := 100; x < 200; x++ {
			switch at(img, x, y) {
			case c:
				grounds++
			case ink(c):
				letters++
			}
		}
	}
	assert.Greater(t, grounds, 500)
	assert.Greater(t, letters, 50)
	if path := os.Getenv("EDGE_INFER_DRAW_PNG"); path != "" {
		writePNG(t, path, img)
	}
}

func writePNG(t *testing.T, path string, p Image) {
	t.Helper()
	im := image.NewRGBA(p.bounds())
	for y := range p.Height {
		for x := range p.Width {
			im.SetRGBA(x, y, at(p, x, y))
		}
	}
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, im))
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
}

func TestNothingIsWrittenOutsideTheImage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	painter := &Painter{Labels: []string{"a long label that is wider than many images", "Mutter ÄÖÜ 螺母"}}
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e30, -1e30, 0}
	coordinate := func() float32 {
		if random.IntN(6) == 0 {
			return odd[random.IntN(len(odd))]
		}
		return random.Float32()*400 - 100
	}
	for range 2000 {
		width, height := 1+random.IntN(200), 1+random.IntN(200)
		stride, before := 3*width+random.IntN(9), 64
		size := stride*(height-1) + 3*width
		memory := bytes.Repeat([]byte{0xa5}, before+size+64)
		img := Image{Data: memory[before : before+size : before+size], Width: width, Height: height, Stride: stride}
		m := mark(coordinate(), coordinate(), coordinate(), coordinate(), random.IntN(4)-1)
		m.Score = coordinate()
		require.NoError(t, painter.Marks(img, []Mark{m}))
		for i, v := range memory {
			inside := i >= before && i < before+size && (i-before)%stride < 3*width
			if !inside && v != 0xa5 {
				t.Fatalf("byte %d of an image of %dx%d with stride %d was written", i-before, width, height, stride)
			}
		}
	}
}

func TestImageErrors(t *testing.T) {
	painter := &Painter{}
	for _, c := range []struct {
		img  Image
		want string
	}{
		{Image{}, "image of 0x0, sides must be 1 to 32768"},
		{Image{Width: 2, Height: 2, Stride: 5, Data: make([]byte, 100)}, "100 bytes for a BGR image of 2x2 with stride 5"},
		{Image{Width: 2, Height: 2, Stride: 6, Data: make([]byte, 11)}, "11 bytes for a BGR image of 2x2 with stride 6"},
	} {
		assert.EqualError(t, painter.Marks(c.img, nil), c.want)
	}
}

func TestNeighbouringClassesDiffer(t *testing.T) {
	for class := range 80 {
		a, b := Colour(class), Colour(class+1)
		difference := math.Abs(float64(a.R)-float64(b.R)) + math.Abs(float64(a.G)-float64(b.G)) + math.Abs(float64(a.B)-float64(b.B))
		assert.Greater(t, difference, 100.0, "classes %d and %d", class, class+1)
	}
	assert.NotPanics(t, func() { Colour(-1) })
}

func TestPaintingAllocatesNothing(t *testing.T) {
	img := blank(320, 240)
	painter := &Painter{Labels: []string{"bolt"}}
	marks := []Mark{mark(10, 60, 100, 200, 0), mark(120, 60, 200, 200, 5)}
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		if err := painter.Marks(img, marks); err != nil {
			t.Error(err)
		}
	}))
}
