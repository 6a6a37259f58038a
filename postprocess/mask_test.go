package postprocess_test

import (
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// disc is a mask of a disc on an image, in a grid of one point for every step pixels.
func disc(x, y, radius, step float32, bounds image.Rectangle) *postprocess.Mask {
	m := &postprocess.Mask{
		Bounds: bounds, Width: int(float32(bounds.Dx())/step) + 3, Height: int(float32(bounds.Dy())/step) + 3, StepX: 1 / step, StepY: 1 / step,
	}
	left, top := float32(bounds.Min.X)-step, float32(bounds.Min.Y)-step // where the grid begins on the image
	m.X, m.Y = (0.5-left)/step, (0.5-top)/step
	for row := range m.Height {
		for column := range m.Width {
			dx, dy := float64(left+float32(column)*step-x), float64(top+float32(row)*step-y)
			m.Logits = append(m.Logits, radius-float32(math.Hypot(dx, dy)))
		}
	}
	return m
}

// pixels is the mask pixel by pixel, as its comment defines it.
func pixels(m *postprocess.Mask, width, height int) []bool {
	all := make([]bool, width*height)
	at := func(column, row int) float64 {
		return float64(m.Logits[min(max(row, 0), m.Height-1)*m.Width+min(max(column, 0), m.Width-1)])
	}
	for x := range width {
		for y := range height {
			if !image.Pt(x, y).In(m.Bounds) {
				continue
			}
			gx, gy := float64(m.X)+float64(x)*float64(m.StepX), float64(m.Y)+float64(y)*float64(m.StepY)
			left, top := math.Floor(gx), math.Floor(gy)
			fx, fy := gx-left, gy-top
			i, j := int(left), int(top)
			value := (at(i, j)*(1-fx)+at(i+1, j)*fx)*(1-fy) + (at(i, j+1)*(1-fx)+at(i+1, j+1)*fx)*fy
			all[x*height+y] = value > 0
		}
	}
	return all
}

func bitmap(runs postprocess.Runs) (all []bool) {
	for i, length := range runs {
		for range length {
			all = append(all, i%2 == 1)
		}
	}
	return all
}

func TestRunsEqualMaskPixels(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	differing := 0
	for range 300 {
		width, height := 1+random.IntN(90), 1+random.IntN(70)
		x, y := random.IntN(width), random.IntN(height)
		m := &postprocess.Mask{
			Bounds: image.Rect(x-3, y-2, x+random.IntN(60), y+random.IntN(60)), Width: 1 + random.IntN(12), Height: 1 + random.IntN(12),
			X: random.Float32()*8 - 4, Y: random.Float32()*8 - 4, StepX: 0.05 + random.Float32(), StepY: 0.05 + random.Float32(),
		}
		for range m.Width * m.Height {
			m.Logits = append(m.Logits, random.Float32()-0.5)
		}
		runs := m.AppendRuns(nil, width, height)
		got, want := bitmap(runs), pixels(m, width, height)
		require.Len(t, got, width*height)
		for i := range got {
			if got[i] != want[i] {
				differing++ // the last bit of a pixel that lies on the edge
			}
		}
	}
	require.LessOrEqual(t, differing, 3)
}

func TestCountsEqualCOCO(t *testing.T) {
	// pycocotools.mask.encode of a 4x5 image (4 rows) with the pixels 5, 6, 9 and 10 in column order, and of one that is full.
	for want, runs := range map[string]postprocess.Runs{
		"52207": {5, 2, 2, 2, 9},
		"0d0":   {0, 20},
	} {
		require.Equal(t, want, string(runs.AppendCounts(nil)))
		read, err := postprocess.ParseCounts([]byte(want))
		require.NoError(t, err)
		require.Equal(t, runs, read)
	}
}

func TestParseCountsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"5P": "run 1 of the counts is none", "5!": "run 1 of the counts is none", "PPPPPPPPPPPP": "run 0 of the counts is none",
		"O": "run 0 of the counts has -1 pixels",
	} {
		_, err := postprocess.ParseCounts([]byte(text))
		require.EqualError(t, err, want)
	}
}

func FuzzParseCounts(f *testing.F) {
	f.Add([]byte("52207"))
	f.Add([]byte("f04600000V1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		runs, err := postprocess.ParseCounts(text)
		if err != nil {
			return
		}
		again, err := postprocess.ParseCounts(runs.AppendCounts(nil))
		if err != nil || !slices.Equal(again, runs) {
			t.Fatalf("%v became %v: %v", runs, again, err)
		}
	})
}

func TestOverlapOfRuns(t *testing.T) {
	a, b := postprocess.Runs{4, 4, 8}, postprocess.Runs{6, 4, 6}
	require.InDelta(t, 2.0/6, a.IoU(b, false), 1e-12)
	require.InDelta(t, 2.0/4, a.IoU(b, true), 1e-12, "the part of the first that lies in the crowd")
	require.Equal(t, 1.0, postprocess.Runs{0, 16}.IoU(postprocess.Runs{0, 16}, false))
	require.Zero(t, postprocess.Runs{16}.IoU(postprocess.Runs{16}, false))
	require.Zero(t, postprocess.Runs{}.IoU(a, false))
}

func TestSmoothRunsKeepTheSumAndTheKinds(t *testing.T) {
	require.Equal(t, postprocess.Runs{5, 9, 6}, postprocess.Runs{5, 4, 1, 4, 2, 1, 3}.Smooth(2))
	require.Equal(t, postprocess.Runs{20}, postprocess.Runs{5, 4, 1, 4, 2, 1, 3}.Smooth(50))
	require.Empty(t, postprocess.Runs{}.Smooth(2))
}

// area is the surface within closed lines.
func area(outlines [][]postprocess.Point) (sum float64) {
	for _, line := range outlines {
		for i, a := range line {
			b := line[(i+1)%len(line)]
			sum += (float64(a.X)*float64(b.Y) - float64(b.X)*float64(a.Y)) / 2
		}
	}
	return sum
}

func TestOutlines(t *testing.T) {
	var tracer postprocess.Tracer
	m := disc(60.3, 50.7, 30, 7, image.Rect(20, 15, 100, 90))
	outlines := tracer.Outlines(m)
	require.Len(t, outlines, 1)
	require.InDelta(t, math.Pi*900, area(outlines), 60)
	require.InDelta(t, float64(m.AppendRuns(nil, 120, 100).Area()), area(outlines), 60)

	cut := disc(60, 50, 60, 7, image.Rect(20, 15, 100, 90)) // fills its box but for the corners
	outlines = tracer.Outlines(cut)
	require.InDelta(t, float64(cut.AppendRuns(nil, 120, 100).Area()), area(outlines), 80)
	for _, p := range outlines[0] {
		require.True(t, p.X >= 20 && p.X <= 100 && p.Y >= 15 && p.Y <= 90, "%v leaves the box", p)
	}

	ring := disc(60, 50, 30, 5, image.Rect(20, 15, 100, 90))
	hole := disc(60, 50, 15, 5, image.Rect(20, 15, 100, 90))
	for i := range ring.Logits {
		ring.Logits[i] = min(ring.Logits[i], -hole.Logits[i])
	}
	require.Len(t, tracer.Outlines(ring), 1, "holes have no outline")

	two := disc(40, 50, 12, 4, image.Rect(0, 0, 120, 100))
	for i, v := range disc(85, 50, 20, 4, image.Rect(0, 0, 120, 100)).Logits {
		two.Logits[i] = max(two.Logits[i], v)
	}
	outlines = tracer.Outlines(two)
	require.Len(t, outlines, 2)
	require.Greater(t, area(outlines[:1]), area(outlines[1:]), "the largest comes first")
}

func TestOutlinesAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	m := &postprocess.Mask{Bounds: image.Rect(0, 0, 640, 480), Width: 160, Height: 120, X: 0, Y: 0, StepX: 0.25, StepY: 0.25}
	for range 160 * 120 {
		m.Logits = append(m.Logits, random.Float32()-0.5)
	}
	for _, most := range []int{3, 20, 128, 1000} {
		tracer := postprocess.Tracer{MaxCorners: most}
		corners := 0
		for _, line := range tracer.Outlines(m) {
			require.GreaterOrEqual(t, len(line), 3)
			corners += len(line)
		}
		require.LessOrEqual(t, corners, most)
	}
	require.Empty(t, new(postprocess.Tracer).Outlines(&postprocess.Mask{}))
}

func FuzzMask(f *testing.F) {
	f.Add(uint8(3), uint8(3), float32(0), float32(0), float32(1), float32(1), []byte{1, 0, 1, 0, 1, 0, 1, 0, 1})
	f.Add(uint8(1), uint8(5), float32(-3e9), float32(1e30), float32(1e-30), float32(1e20), []byte{255, 1, 7})
	f.Fuzz(func(t *testing.T, width, height uint8, x, y, stepX, stepY float32, raw []byte) {
		m := &postprocess.Mask{
			Bounds: image.Rect(-2, 1, 40, 30), Width: int(width % 40), Height: int(height % 40), X: x, Y: y, StepX: stepX, StepY: stepY,
		}
		for i := range m.Width * m.Height {
			value := float32(0)
			if len(raw) > 0 {
				value = float32(int8(raw[i%len(raw)]))
			}
			if value == 127 {
				value = float32(math.NaN())
			}
			m.Logits = append(m.Logits, value)
		}
		runs := m.AppendRuns(nil, 33, 27)
		sum := 0
		for i, n := range runs {
			sum += int(n)
			if i > 0 && n == 0 {
				t.Fatalf("an empty run in %v", runs)
			}
		}
		if sum != 33*27 {
			t.Fatalf("%d pixels in %v", sum, runs)
		}
		tracer := postprocess.Tracer{MaxCorners: 16}
		for _, line := range tracer.Outlines(m) {
			for _, p := range line {
				if !(p.X >= -2 && p.X <= 40 && p.Y >= 1 && p.Y <= 30) {
					t.Fatalf("%v is outside", p)
				}
			}
		}
	})
}

func TestRasterizedMaskHasSameRuns(t *testing.T) {
	m := disc(60, 50, 20, 5, image.Rect(30, 20, 100, 90))
	want := m.AppendRuns(nil, 120, 100)
	m.Rasterize(120, 100)
	require.Nil(t, m.Logits)
	require.Equal(t, want, m.AppendRuns(nil, 120, 100))
	require.Empty(t, new(postprocess.Tracer).Outlines(m))
}
