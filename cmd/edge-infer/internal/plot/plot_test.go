package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wellFormed fails when the bytes are no XML, or hold what no reader of SVG takes.
func wellFormed(t *testing.T, document []byte) {
	t.Helper()
	assert.NotRegexp(t, `NaN|Inf|-9223372036854775808`, string(document))
	for decoder := xml.NewDecoder(bytes.NewReader(document)); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func pixels(t *testing.T, f *Figure) image.Image {
	t.Helper()
	data, err := f.PNG()
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	return img
}

func is(t *testing.T, img image.Image, x, y float64, want color.NRGBA) {
	t.Helper()
	assert.Equal(t, want, color.NRGBAModel.Convert(img.At(int(2*x), int(2*y))), "at %.0f, %.0f", x, y)
}

var unit = Axis{Label: "share", Min: 0, Max: 1}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		axis  Axis
		count float64
		want  string
	}{
		{unit, 6, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{unit, 2, "0.0 0.5 1.0"},
		{Axis{Min: -1, Max: 1}, 4, "-1.0 -0.5 0.0 0.5 1.0"},
		{Axis{Min: 0, Max: 17.4}, 5, "0 5 10 15"},
		{Axis{Min: 3, Max: 250}, 5, "50 100 150 200 250"},
		{Axis{Min: 0.0012, Max: 0.0018}, 3, "0.0012 0.0014 0.0016 0.0018"},
		{Axis{Min: 0, Max: 3e6}, 3, "0 1000000 2000000 3000000"},
		{Axis{Min: 0, Max: 3e-12}, 3, "0 1e-12 2e-12 3e-12"},
		{Axis{Min: 0, Max: 5e12}, 2, "0 5e+12"},
	} {
		var texts []string
		for _, tick := range test.axis.ticks(test.count) {
			texts = append(texts, tick.text)
		}
		assert.Equal(t, test.want, strings.Join(texts, " "))
	}
	huge := Axis{Min: 1e300, Max: math.Nextafter(1e300, math.Inf(1))}
	assert.LessOrEqual(t, len(huge.ticks(3)), 5, "there is no number between")
}

func TestSpan(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, test := range []struct {
		values    []float64
		low, high float64
	}{
		{[]float64{1.2, 12.4, 17.4}, 0, 20},
		{[]float64{96, 99.5}, 96, 100},
		{[]float64{-3, 8}, -5, 10},
		{[]float64{5, 5}, 0, 5},
		{[]float64{0, 0}, 0, 1},
		{[]float64{-2}, -2, -1},
		{[]float64{nan, 0.5, inf, 1}, 0.5, 1},
		{[]float64{nan}, 0, 1},
		{[]float64{-math.MaxFloat64, math.MaxFloat64}, 0, 1},
		{nil, 0, 1},
	} {
		got := Axis{}.span([]Series{{Y: test.values}}, func(s Series) []float64 { return s.Y })
		assert.InDelta(t, test.low, got.Min, 1e-9, "%v", test.values)
		assert.InDelta(t, test.high, got.Max, 1e-9, "%v", test.values)
	}
	assert.Equal(t, unit, unit.span([]Series{{Y: []float64{7}}}, func(s Series) []float64 { return s.Y }), "limits that are given stay")
}

// chart is one with a frame that a test can find: the last closed line in the colour of frames.
func frameOf(t *testing.T, document []byte) rectangle {
	t.Helper()
	all := regexp.MustCompile(`points="([^"]*)" fill="none" stroke="`+paint(faint)+`"`).FindAllSubmatch(document, -1)
	require.NotEmpty(t, all)
	var r rectangle
	var skip float64
	_, err := fmt.Sscanf(string(all[len(all)-1][1]), "%g,%g %g,%g %g,%g", &r.left, &r.top, &r.right, &skip, &skip, &r.bottom)
	require.NoError(t, err)
	return r
}

func TestChart(t *testing.T) {
	f := &Figure{Title: "<before> & after", Panels: []Panel{&Chart{
		Title: "one\x00", X: unit, Y: Axis{Label: "ms", Min: 0, Max: 10},
		Series: []Series{
			{Name: "rising", X: []float64{0, 1}, Y: []float64{0, 10}},
			{Name: "broken", X: []float64{0, 0.1, 0.2, 0.3, 0.4}, Y: []float64{1, 1, math.NaN(), 1, 1}, Style: Dashed},
			{Name: "outside", X: []float64{0.5, 2}, Y: []float64{2.5, 5}, Style: Points},
			{X: []float64{0, 1}, Y: []float64{10, 0}, Style: Reference},
		},
	}}}
	document := f.SVG()
	wellFormed(t, document)
	text := string(document)
	for _, want := range []string{">&lt;before&gt; &amp; after<", ">rising<", ">broken<", ">outside<", ">ms<", ">0.2<", ">10<", "rotate(-90"} {
		assert.Contains(t, text, want)
	}
	frame := frameOf(t, document)
	rising := fmt.Sprintf(`points="%s,%s %s,%s" fill="none" stroke="#0072b2"`,
		number(frame.left), number(frame.bottom), number(frame.right), number(frame.top))
	assert.Contains(t, text, rising, "from corner to corner")
	pieces := strings.Count(text, `stroke="#d55e00" stroke-width="1.6" stroke-linejoin="round" stroke-dasharray="5"`)
	assert.Equal(t, 3, pieces, "two pieces and the legend's")
	assert.Equal(t, 2, strings.Count(text, "<circle"), "one point and the legend's")

	img := pixels(t, f)
	width, height := f.size()
	assert.Equal(t, image.Pt(int(math.Ceil(2*width)), int(math.Ceil(2*height))), img.Bounds().Size())
	is(t, img, 1, 1, paper)
	third := point{frame.left + frame.width()/3, frame.bottom - frame.height()/3}
	is(t, img, third.x, third.y, palette[0])
	is(t, img, third.x, third.y+12, paper)
	is(t, img, frame.left+frame.width()/2, frame.bottom-frame.height()/4, palette[2])
}

func TestLegend(t *testing.T) {
	var many []Series
	for i := range 30 {
		many = append(many, Series{Name: fmt.Sprint("class ", i), X: []float64{0, 1}, Y: []float64{0, float64(i)}})
	}
	few, crowded := &Chart{Series: many[:5]}, &Chart{Series: many}
	narrow, _ := few.size()
	wide, _ := crowded.size()
	assert.InDelta(t, chartWidth, narrow, 0, "inside")
	assert.Greater(t, wide, chartWidth+100, "beside")
	text := string((&Figure{Panels: []Panel{crowded}}).SVG())
	assert.Contains(t, text, ">class 19<")
	assert.NotContains(t, text, ">class 20<")
	assert.Contains(t, text, ">and 10 more<")
	all := crowded.coloured()
	assert.Equal(t, all[0].colour, all[7].colour)
	assert.Equal(t, []Style{Line, Dashed, Line}, []Style{all[0].series.Style, all[7].series.Style, all[14].series.Style})

	frame := rectangle{0, 0, 100, 100}
	assert.Equal(t, rectangle{72, 8, 92, 28}, emptiest(frame, 20, 20, nil))
	assert.Equal(t, rectangle{8, 72, 28, 92}, emptiest(frame, 20, 20, []point{{80, 20}}))
	assert.Equal(t, rectangle{72, 72, 92, 92}, emptiest(frame, 20, 20, []point{{80, 20}, {20, 80}}))
	assert.Equal(t, rectangle{8, 8, 28, 28}, emptiest(frame, 20, 20, along([]point{{82, 0}, {82, 100}, {0, 82}}, Line)))
}

func TestMatrix(t *testing.T) {
	m := &Matrix{
		Title: "confusion", RowLabel: "found", ColumnLabel: "true", Rows: []string{"a", "b"}, Columns: []string{"a", "background"},
		Values: [][]float64{{3, 1}, {0, math.NaN()}}, ByRow: true,
	}
	f := &Figure{Panels: []Panel{m}}
	document := f.SVG()
	wellFormed(t, document)
	text := string(document)
	for _, want := range []string{">confusion<", ">found<", ">true<", ">background<", ">3<", ">1<", paint(shade(0.75)), paint(shade(0.25))} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, ">0<")
	assert.Contains(t, text, `transform="rotate(-90`, "a name that is longer than its column")
	l := m.layout()
	img := pixels(t, f)
	cell := func(row, column int) (x, y float64) { // near its corner, beside the number
		return gap + l.left + l.cell*float64(column) + 4, gap + l.top + l.cell*float64(row) + 4
	}
	for _, test := range []struct {
		row, column int
		share       float64
	}{{0, 0, 0.75}, {0, 1, 0.25}, {1, 0, 0}, {1, 1, 0}} {
		x, y := cell(test.row, test.column)
		is(t, img, x, y, shade(test.share))
	}
	m.ByRow = false
	x, y := cell(0, 0)
	is(t, pixels(t, f), x, y, shade(1))

	large := &Matrix{Rows: make([]string, 80), Columns: make([]string, 80), Values: [][]float64{{1}}}
	width, height := large.size()
	assert.InDelta(t, 80*cellLeast, width, 100)
	assert.InDelta(t, 80*cellLeast, height, 100)
	assert.NotContains(t, string((&Figure{Panels: []Panel{large}}).SVG()), ">1<", "no number fits")
	wellFormed(t, (&Figure{Panels: []Panel{&Matrix{}, &Chart{}}}).SVG())
}

func TestDashes(t *testing.T) {
	line := []point{{0, 0}, {10, 0}, {10, 6}}
	assert.Equal(t, [][]point{line}, dashes(line, 0))
	assert.Equal(t, [][]point{{{0, 0}, {4, 0}}, {{8, 0}, {10, 0}, {10, 2}}}, dashes(line, 4))
	assert.Equal(t, [][]point{{{1, 1}}}, dashes([]point{{1, 1}}, 4))
}

// A wide line has no holes where its pieces overlap, whichever way they run.
func TestWideLinesAreWhole(t *testing.T) {
	c := newRaster(60, 60, 1)
	c.area([]point{{0, 0}, {60, 0}, {60, 60}, {0, 60}}, paper)
	zigzag := []point{{10, 10}, {50, 12}, {12, 30}, {50, 50}, {10, 48}, {50, 12}}
	c.line(zigzag, 6, 0, ink)
	for i := 1; i < len(zigzag); i++ {
		a, b := zigzag[i-1], zigzag[i]
		for k := range 101 {
			share := float64(k) / 100
			x, y := int(a.x+share*(b.x-a.x)), int(a.y+share*(b.y-a.y))
			require.Equal(t, color.NRGBAModel.Convert(ink), color.NRGBAModel.Convert(c.img.At(x, y)), "%d, %d", x, y)
		}
	}
}

// Text stands where it is aligned to, to the right or upward, and its letters have their holes.
func TestText(t *testing.T) {
	covered := func(l label) (box image.Rectangle, c *raster) {
		c = newRaster(100, 100, 1)
		c.write(point{50, 50}, "Hop", l)
		for y := range 100 {
			for x := range 100 {
				if _, _, _, alpha := c.img.At(x, y).RGBA(); alpha > 0x8000 {
					box = box.Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
		return box, c
	}
	width := int(20 * glyphs("Hop", nil))
	box, c := covered(label{size: 20, colour: ink})
	assert.InDelta(t, 50, box.Min.X, 3)
	assert.InDelta(t, 50+width, box.Max.X, 3)
	assert.InDelta(t, 50-20*0.73, box.Min.Y, 3)
	assert.InDelta(t, 50+20*0.2, box.Max.Y, 3)
	hole := c.img.At(50+int(20*(glyphs("H", nil)+glyphs("o", nil)/2)), 50-5)
	_, _, _, alpha := hole.RGBA()
	assert.Zero(t, alpha, "the inside of an o")
	box, _ = covered(label{size: 20, colour: ink, align: end})
	assert.InDelta(t, 50-width, box.Min.X, 3)
	box, _ = covered(label{size: 20, colour: ink, align: middle})
	assert.InDelta(t, 50, (box.Min.X+box.Max.X)/2, 3)
	box, _ = covered(label{size: 20, colour: ink, upward: true})
	assert.InDelta(t, 50-width, box.Min.Y, 3)
	assert.InDelta(t, 50, box.Max.Y, 3)
	assert.InDelta(t, 50-20*0.73, box.Min.X, 3)
}

func TestCheckPath(t *testing.T) {
	require.NoError(t, CheckPath("a.svg"))
	require.NoError(t, CheckPath("directory/A.PNG"))
	require.EqualError(t, CheckPath("a.pdf"), `"a.pdf" is no diagram's name (let it end with .svg or .png)`)
	f := &Figure{Title: "t"}
	for path, begin := range map[string]string{"a.svg": "<svg ", "a.PNG": "\x89PNG"} {
		data, err := f.Encode(path)
		require.NoError(t, err)
		assert.True(t, bytes.HasPrefix(data, []byte(begin)), path)
	}
}

// Whatever the numbers are, a diagram comes of them.
func TestAnyNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	odd := []float64{
		0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e300, 1, -1, 1e-9,
	}
	value := func() float64 {
		if random.IntN(2) == 0 {
			return odd[random.IntN(len(odd))]
		}
		return random.NormFloat64() * math.Pow(10, float64(random.IntN(20)-10))
	}
	list := func() (all []float64) {
		for range random.IntN(6) {
			all = append(all, value())
		}
		return all
	}
	for range 300 {
		c, m := &Chart{X: Axis{Label: "x"}}, &Matrix{Rows: []string{"a"}, Columns: []string{"b", "c"}, ByRow: random.IntN(2) == 0}
		for range random.IntN(4) {
			c.Series = append(c.Series, Series{Name: "s", X: list(), Y: list(), Style: Style(random.IntN(5))})
		}
		m.Values = [][]float64{{value(), value()}}
		wellFormed(t, (&Figure{Panels: []Panel{c, m}}).SVG())
	}
}
