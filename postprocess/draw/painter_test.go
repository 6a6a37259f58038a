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

// Labels of neighbours do not cover each other and are whole, at every side of the image.
func TestLabelsKeepClearOfEachOther(t *testing.T) {
	long := "a label that is much wider than the image it is written on, and then some more"
	painter := &Painter{Labels: []string{"person", "traffic light", long}}
	img := blank(640, 480)
	crowd := []Mark{
		mark(100, 100, 200, 300, 0), mark(105, 102, 205, 300, 1), mark(110, 98, 190, 290, 0), mark(115, 100, 220, 310, 1),
		mark(600, 50, 639, 90, 1), mark(610, 52, 640, 95, 0), mark(0, 0, 30, 20, 1), mark(2, 2, 28, 22, 0),
		mark(500, 440, 640, 480, 1), mark(510, 445, 640, 480, 0), mark(-50, -50, 800, 600, 0), mark(300, 200, 330, 220, 2),
	}
	require.NoError(t, painter.Marks(img, crowd))
	require.NoError(t, painter.Outline(img, []Point{{100, 100}, {200, 100}, {200, 200}}, true, "yard: 2, entered 3", Colour(2)))
	require.NoError(t, painter.Line(img, Point{620, 20}, Point{620, 300}, "gate: in 1, out 2", Colour(3)))
	require.Len(t, painter.notes, len(crowd)+2)
	for i, note := range painter.notes {
		require.True(t, note.In(img.bounds()), "%v", note)
		for _, other := range painter.notes[:i] {
			require.False(t, note.Overlaps(other), "%v and %v", note, other)
		}
	}
	require.Less(t, painter.notes[11].Dx(), 641)
	require.NoError(t, painter.Marks(img, crowd[:1]))
	require.Len(t, painter.notes, 1, "of the next image")
	if path := os.Getenv("EDGE_INFER_DRAW_PNG"); path != "" {
		img = blank(640, 480)
		require.NoError(t, painter.Marks(img, crowd))
		require.NoError(t, painter.Outline(img, []Point{{300, 300}, {400, 300}, {400, 400}}, true, "yard: 2, entered 3", Colour(2)))
		require.NoError(t, painter.Line(img, Point{620, 20}, Point{620, 300}, "gate: in 1, out 2", Colour(3)))
		require.NoError(t, painter.Line(img, Point{250, 400}, Point{450, 350}, "door: in 1, out 2", Colour(4)))
		writePNG(t, path+".crowd.png", img)
	}
}

// A label that is more than a few lines of labels away from its box would belong to another: then labels cover each other.
func TestACrowdOfLabelsIsPainted(t *testing.T) {
	painter := &Painter{Labels: []string{"person"}}
	img := blank(320, 240)
	var crowd []Mark
	for range 300 {
		crowd = append(crowd, mark(100, 100, 140, 140, 0))
	}
	require.NoError(t, painter.Marks(img, crowd))
	for _, note := range painter.notes {
		require.True(t, note.In(img.bounds()))
		require.Less(t, note.Min.Y, 140+(nearNotes+1)*note.Dy())
	}
}

// The arrow of a line points to the right of its direction, where in is.
func TestALineHasADirection(t *testing.T) {
	for _, c := range []struct{ from, to, in, out Point }{
		{Point{100, 20}, Point{100, 220}, Point{92, 120}, Point{108, 120}}, // down: right is to the left of the image
		{Point{100, 220}, Point{100, 20}, Point{108, 120}, Point{92, 120}},
		{Point{20, 120}, Point{300, 120}, Point{160, 128}, Point{160, 112}},
	} {
		img := blank(320, 240)
		require.NoError(t, (&Painter{}).Line(img, c.from, c.to, "", Colour(0)))
		require.Equal(t, Colour(0), at(img, int(c.in.X), int(c.in.Y)))
		require.Equal(t, color.RGBA{0, 0, 0, 255}, at(img, int(c.out.X), int(c.out.Y)))
	}
	for _, odd := range []float32{float32(math.NaN()), float32(math.Inf(1)), 1e30} {
		require.NoError(t, (&Painter{}).Line(blank(32, 24), Point{odd, 1}, Point{1, odd}, "gate", Colour(0)))
	}
	require.NoError(t, (&Painter{}).Line(blank(32, 24), Point{5, 5}, Point{5, 5}, "gate", Colour(0)))
}
