package head

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

type golden struct {
	Transform struct {
		Size   int
		Scale  float32
		Pad    [2]float32
		Source [2]int
	}
	Cases []goldenCase
}

type goldenCase struct {
	Name, Type      string
	Layout          Layout
	Classes         int
	Shape           []int64
	Confidence, IoU float32
	Agnostic        bool
	MultiLabel      bool `json:"multi_label"`
	Detections      []goldenDetection
}

type goldenDetection struct {
	Box       [4]float32
	Score     float32
	Class     int
	Keypoints [][3]float32
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(text, &g))
	return g
}

func (c *goldenCase) halves(t *testing.T) []uint16 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", c.Name+".bin"))
	require.NoError(t, err)
	out := make([]uint16, len(raw)/2)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return out
}

func (c *goldenCase) floats(t *testing.T) []float32 {
	t.Helper()
	halves := c.halves(t)
	out := make([]float32, len(halves)/2)
	for i := range out {
		out[i] = math.Float32frombits(uint32(halves[2*i]) | uint32(halves[2*i+1])<<16)
	}
	return out
}

func TestGoldenTensors(t *testing.T) {
	g := readGolden(t)
	transform := engine.Transform{ScaleX: g.Transform.Scale, ScaleY: g.Transform.Scale, PadX: g.Transform.Pad[0], PadY: g.Transform.Pad[1]}
	require.NotEmpty(t, g.Cases)
	for _, c := range g.Cases {
		t.Run(c.Name, func(t *testing.T) {
			m := described(c.Classes, c.Shape)
			m.Width, m.Height = g.Transform.Size, g.Transform.Size
			d := openDecoder(t, m, Options{MinScore: c.Confidence, IoU: c.IoU, Agnostic: c.Agnostic, MultiLabel: c.MultiLabel})
			assert.Equal(t, c.Layout, d.Recognised().Layout)
			var output engine.Tensor
			if c.Type == "float16" {
				output = halves(c.halves(t), c.Shape)
			} else {
				output = whole(c.floats(t), c.Shape)
			}
			got, _, err := d.Decode(result(transform, output), 0, g.Transform.Source[0], g.Transform.Source[1], nil)
			require.NoError(t, err)
			require.Len(t, got, len(c.Detections))
			for i, want := range c.Detections {
				assert.Equal(t, want.Class, got[i].Class, "detection %d", i)
				assert.InDelta(t, want.Score, got[i].Score, 1e-6, "detection %d", i)
				for j, edge := range [4]float32{got[i].X1, got[i].Y1, got[i].X2, got[i].Y2} {
					assert.InDelta(t, want.Box[j], edge, 1e-3, "detection %d, edge %d", i, j)
				}
			}
		})
	}
}

var identity = engine.Transform{ScaleX: 1, ScaleY: 1}

func TestDecodeEqualsReferenceOnRandomMaps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 1000 {
		boxes, classes := 1+random.IntN(400), 1+random.IntN(12)
		data := randomMap(random, boxes, classes, random.IntN(120), 64, 320)
		shape := []int64{1, int64(4 + classes), int64(boxes)}
		o := Options{Layout: LayoutYOLOv8, Agnostic: round%3 == 0, IoU: 0.3 + 0.5*random.Float32(), Limit: 1000}
		if round%5 == 0 {
			o.Classes = []int{random.IntN(classes)}
			o.ClassMinScores = map[int]float32{random.IntN(classes): 0.6}
		}
		d := openDecoder(t, described(0, shape), o)
		got, stats, err := d.Decode(result(identity, whole(data, shape)), 0, 1000, 1000, nil)
		require.NoError(t, err)
		var want []postprocess.Detection
		for _, c := range reference(&d.settings, data, boxes, classes, nil) {
			box := postprocess.Box{X1: max(c.X1, 0), Y1: max(c.Y1, 0), X2: min(c.X2, 1000), Y2: min(c.Y2, 1000)}
			if box.X1 < box.X2 && box.Y1 < box.Y2 {
				want = append(want, postprocess.Detection{Box: box, Score: c.Score, Class: int(c.Class)})
			}
		}
		require.Equal(t, want, got, "round %d", round)
		require.Equal(t, stats.Candidates, len(got)+stats.Suppressed+stats.Outside+stats.Truncated, "round %d", round)
	}
}

func TestDeviceListGivesTheSameBoxesInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	shape := []int64{1, 24, 700}
	d := openDecoder(t, described(20, shape), Options{Layout: LayoutYOLOv8})
	transform := engine.Transform{ScaleX: 0.5, ScaleY: 0.4, PadY: 12}
	for range 50 {
		data := randomMap(random, 700, 20, 200, 64, 640)
		want, _, err := d.Decode(result(transform, whole(data, shape)), 0, 1280, 1500, nil)
		require.NoError(t, err)
		list := slices.Clone(d.decoder.(*denseDecoder).candidates)
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		var rows []float32
		for _, c := range list {
			rows = append(rows, c.X1, c.Y1, c.X2, c.Y2, c.Score, float32(c.Class))
		}
		got, stats, err := d.Decode(listed(transform, rows), 0, 1280, 1500, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Zero(t, stats.Invalid)
	}
}

// column writes one box of a yolov8 map.
func column(data []float32, boxes, at int, values ...float32) {
	for row, v := range values {
		data[row*boxes+at] = v
	}
}

func TestBadNumbersAreSkippedAndCounted(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	const boxes = 100
	shape := []int64{1, 6, boxes}
	data := make([]float32, 6*boxes)
	column(data, boxes, 0, 50, 50, 20, 20, 0.9, 0.1)
	column(data, boxes, 1, nan, 50, 20, 20, 0.9, 0.8)
	column(data, boxes, 2, 50, inf, 20, 20, 0.9, 0)
	column(data, boxes, 3, 50, 50, -20, 20, 0.9, 0)
	column(data, boxes, 4, 50, 50, 0, 20, 0.9, 0)
	column(data, boxes, 5, 50, 50, 20, inf, 0.9, 0)
	column(data, boxes, 6, 150, 50, 20, 20, nan, 0.7)
	column(data, boxes, 7, 50, 50, 20, 20, inf, 0)
	column(data, boxes, 8, 50, 50, 20, 20, -inf, 0)
	column(data, boxes, 9, 50, 50, 20, 20, 7, 0)
	column(data, boxes, 10, 900, 50, 20, 20, 0.5, 0)
	want := []postprocess.Detection{found(0, 0.9, 40, 40, 60, 60), found(1, 0.7, 140, 40, 160, 60)}

	d := openDecoder(t, described(2, shape), Options{Layout: LayoutYOLOv8})
	got, stats, err := d.Decode(result(identity, whole(data, shape)), 0, 200, 200, nil)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, Stats{Candidates: 3, Outside: 1, Invalid: 8, BadScores: 3, OutsideInput: 1}, stats)
	impossible, err := d.CountBadScores(result(identity, whole(data, shape)), 0)
	require.NoError(t, err)
	assert.Equal(t, 4, impossible, "and the infinitely negative one, which no threshold lets through")

	rows := make([]float32, 0, boxes*7)
	for i := range boxes {
		rows = append(rows, data[i], data[boxes+i], data[2*boxes+i], data[3*boxes+i], 1, data[4*boxes+i], data[5*boxes+i])
	}
	rows[50*7+4], rows[51*7+4] = nan, inf
	d = openDecoder(t, described(0, []int64{1, boxes, 7}), Options{Layout: LayoutYOLOv5})
	got, stats, err = d.Decode(result(identity, whole(rows, []int64{1, boxes, 7})), 0, 200, 200, nil)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, 3, stats.Candidates)
	assert.Positive(t, stats.Invalid)
	impossible, err = d.CountBadScores(result(identity, whole(rows, []int64{1, boxes, 7})), 0)
	require.NoError(t, err)
	assert.Equal(t, 6, impossible, "and two objectnesses")

	d = openDecoder(t, described(2, []int64{1, 9, 6}), Options{Layout: LayoutEnd2End})
	list := result(identity, whole([]float32{
		10, 10, 20, 20, 0.9, 1,
		nan, 10, 20, 20, 0.9, 1,
		10, 10, 10, 20, 0.9, 1,
		10, 10, 20, 20, nan, 1,
		10, 10, 20, 20, 0.9, maxUnnamed,
		10, 10, 20, 20, 0.9, -1,
		10, 10, 20, 20, 0.9, 0.5,
		10, 10, 20, 20, 0.9, nan,
		nan, nan, nan, nan, 0, nan,
	}, []int64{1, 9, 6}))
	got, stats, err = d.Decode(list, 0, 200, 200, nil)
	require.NoError(t, err)
	assert.Equal(t, []postprocess.Detection{found(1, 0.9, 10, 10, 20, 20)}, got)
	assert.Equal(t, Stats{Candidates: 1, Invalid: 7, BadScores: 5}, stats)
	impossible, err = d.CountBadScores(list, 0)
	require.NoError(t, err)
	assert.Equal(t, 5, impossible)
}

// TestClassNumberBeyondTheNames: a row of a class that the labels do not reach is a detection, unless the class is not wanted.
func TestClassNumberBeyondTheNames(t *testing.T) {
	list := result(identity, whole([]float32{
		10, 10, 20, 20, 0.9, 5,
		30, 30, 50, 50, 0.8, 1,
	}, []int64{1, 2, 6}))
	for _, c := range []struct {
		options Options
		want    []postprocess.Detection
	}{
		{Options{}, []postprocess.Detection{found(5, 0.9, 10, 10, 20, 20), found(1, 0.8, 30, 30, 50, 50)}},
		{Options{Classes: []int{1}}, []postprocess.Detection{found(1, 0.8, 30, 30, 50, 50)}},
		{Options{MinScore: 0.85}, []postprocess.Detection{found(5, 0.9, 10, 10, 20, 20)}},
	} {
		c.options.Layout = LayoutEnd2End
		got, stats, err := openDecoder(t, described(2, []int64{1, 2, 6}), c.options).Decode(list, 0, 200, 200, nil)
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
		assert.Zero(t, stats.BadScores)
	}
}

func TestDecodeErrors(t *testing.T) {
	shape := []int64{1, 84, 8400}
	m := described(80, []int64{-1, 84, -1})
	m.Metadata.Task = engine.Detect
	d := openDecoder(t, m, Options{})
	for _, c := range []struct {
		data      int
		shape     []int64
		transform engine.Transform
		width     int
		want      string
	}{
		{10, shape, identity, 10, "decode: bad network output: output output0 with 10 numbers an image for shape [1 84 8400]"},
		{0, shape, identity, 10, "decode: bad network output: output output0 with 0 numbers an image for shape [1 84 8400]"},
		{840, []int64{1, 84, -10}, identity, 10, "decode: bad network output: output output0 with 840 numbers an image for shape [1 84 -10]"},
		{
			84,
			[]int64{1, 84, 1 << 62},
			identity, 10,
			"decode: bad network output: output output0 with 84 numbers an image for shape [1 84 4611686018427387904]",
		},
		{85, []int64{1, 85, 1}, identity, 10, "decode: bad network output: [[1 85 1]] has 81 classes, not 80"},
		{84, []int64{84}, identity, 10, "decode: bad network output: layout yolov8 needs [B,4+nc,N], not [[84]]"},
		{84, []int64{-1, 84, 1}, identity, 10, "decode: bad network output: output output0 with shape [-1 84 1] has no image 0"},
		{84, []int64{1, 84, 1}, identity, 0, "decode: source image of 0x10"},
		{84, []int64{1, 84, 1}, engine.Transform{}, 10, "decode: transform {ScaleX:0 ScaleY:0 PadX:0 PadY:0} cannot be inverted"},
	} {
		got, _, err := d.Decode(result(c.transform, whole(make([]float32, c.data), c.shape)), 0, c.width, 10, nil)
		assert.EqualError(t, err, c.want)
		assert.Empty(t, got)
	}
	_, _, err := d.Decode(result(identity, whole(nil, shape)), 0, 1, 1, nil)
	assert.ErrorIs(t, err, ErrOutput)
	_, _, err = d.Decode(result(identity, whole(nil, shape)), 1, 1, 1, nil)
	assert.EqualError(t, err, "decode: image 1 of a result for 1")
	_, _, err = d.Decode(result(identity), 0, 1, 1, nil)
	assert.EqualError(t, err, "decode: bad network output: output 0 of a result with 0")
	_, _, err = d.Decode(listed(identity, make([]float32, 7)), 0, 10, 10, nil)
	assert.EqualError(t, err, "decode: bad network output: 7 numbers are not rows of 6")
	flags := engine.Tensor{Name: "output0", Type: engine.Bool, Shape: []int64{1, 84, 1}, Data: make([]byte, 84)}
	_, _, err = d.Decode(result(identity, flags), 0, 10, 10, nil)
	assert.EqualError(t, err, "decode: bad network output: output output0 is bool, only float32, float16, int32 and int64 are decoded")
}

func TestBestClassDecidesBeforeTheFilter(t *testing.T) {
	const boxes = 2
	shape := []int64{1, 7, boxes}
	data := make([]float32, 7*boxes)
	column(data, boxes, 0, 50, 50, 20, 20, 0.9, 0.6, 0)
	column(data, boxes, 1, 150, 50, 20, 20, 0.1, 0.5, 0.4)
	for _, c := range []struct {
		name string
		o    Options
		want []postprocess.Detection
	}{
		{"all", Options{}, []postprocess.Detection{found(0, 0.9, 40, 40, 60, 60), found(1, 0.5, 140, 40, 160, 60)}},
		{"a box of another class is not the wanted one", Options{Classes: []int{1}}, []postprocess.Detection{found(1, 0.5, 140, 40, 160, 60)}},
		{"class threshold", Options{ClassMinScores: map[int]float32{1: 0.55}}, []postprocess.Detection{found(0, 0.9, 40, 40, 60, 60)}},
		{
			"lower class threshold",
			Options{MinScore: 0.95, ClassMinScores: map[int]float32{1: 0.3}},
			[]postprocess.Detection{found(1, 0.5, 140, 40, 160, 60)},
		},
		{"multi-label", Options{MultiLabel: true}, []postprocess.Detection{
			found(0, 0.9, 40, 40, 60, 60), found(1, 0.6, 40, 40, 60, 60), found(1, 0.5, 140, 40, 160, 60), found(2, 0.4, 140, 40, 160, 60),
		}},
		{"multi-label with filter", Options{MultiLabel: true, Classes: []int{1}}, []postprocess.Detection{
			found(1, 0.6, 40, 40, 60, 60), found(1, 0.5, 140, 40, 160, 60),
		}},
		{"no class", Options{Classes: []int{}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.o
			o.Layout = LayoutYOLOv8
			d := openDecoder(t, described(0, shape), o)
			got, _, err := d.Decode(result(identity, whole(data, shape)), 0, 200, 200, nil)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestCapsKeepTheBest(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const boxes, classes = 900, 8
	shape := []int64{1, 4 + classes, boxes}
	data := make([]float32, (4+classes)*boxes)
	for i := range boxes {
		column(data, boxes, i, float32(i%30)*20+10, float32(i/30)*20+10, 10, 10)
	}
	for i, place := range random.Perm(boxes * classes) {
		data[4*boxes+i] = 0.3 + float32(place)/20000
	}
	for _, multi := range []bool{false, true} {
		d := openDecoder(t, described(0, shape), Options{Layout: LayoutYOLOv8, MultiLabel: multi, MaxCandidates: 50, Limit: 20})
		got, stats, err := d.Decode(result(identity, whole(data, shape)), 0, 2000, 2000, nil)
		require.NoError(t, err)
		require.Len(t, got, 20)
		wide := openDecoder(t, described(0, shape), Options{Layout: LayoutYOLOv8, MultiLabel: multi, Limit: 20})
		want, all, err := wide.Decode(result(identity, whole(data, shape)), 0, 2000, 2000, nil)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, all.Candidates, stats.Candidates)
		assert.Equal(t, stats.Candidates-50, stats.Truncated)
		assert.Equal(t, 30, stats.Suppressed)
		more := openDecoder(t, described(0, shape), Options{Layout: LayoutYOLOv8, MultiLabel: multi, Limit: 21})
		next, _, err := more.Decode(result(identity, whole(data, shape)), 0, 2000, 2000, nil)
		require.NoError(t, err)
		assert.InDelta(t, next[20].Score, stats.Cut, 0, "the best detection over the limit")
		if multi {
			assert.Equal(t, boxes*classes, stats.Candidates)
		}
	}
	rows := make([]float32, 0, 7*900)
	for i := range 900 {
		rows = append(rows, 5, 5, 10, 10, 1, 0.3+float32(i)/2000, 0.4)
	}
	d := openDecoder(t, described(0, []int64{1, 900, 7}), Options{Layout: LayoutYOLOv5, MultiLabel: true, MaxCandidates: 10, Limit: 5})
	got, stats, err := d.Decode(result(identity, whole(rows, []int64{1, 900, 7})), 0, 100, 100, nil)
	require.NoError(t, err)
	assert.Equal(t, 1800, stats.Candidates)
	assert.Len(t, got, 1)
	assert.Zero(t, stats.Cut, "the others are suppressed")
	assert.InDelta(t, 0.3+899.0/2000, got[0].Score, 1e-6)
}

func TestClassification(t *testing.T) {
	m, shape := described(0, []int64{-1, 4}), []int64{1, 4}
	m.Metadata.Task = engine.Classify
	d := openDecoder(t, m, Options{TopK: 2})
	got, _, err := d.Decode(result(identity, whole([]float32{0.1, 0.6, 0.05, 0.25}, shape)), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Equal(t, []postprocess.Detection{found(1, 0.6, 0, 0, 640, 480), found(3, 0.25, 0, 0, 640, 480)}, got)
	got, stats, err := d.Decode(result(identity, whole([]float32{1, float32(math.NaN()), 3, -2}, shape)), 0, 640, 480, nil)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, 1, stats.Invalid)
	assert.Equal(t, 2, got[0].Class)
	total := math.Exp(1) + math.Exp(3) + math.Exp(-2)
	assert.InDelta(t, math.Exp(3)/total, got[0].Score, 1e-6)
	assert.InDelta(t, math.Exp(1)/total, got[1].Score, 1e-6)
	d = openDecoder(t, m, Options{TopK: 2, MinScore: 0.5})
	got, _, err = d.Decode(result(identity, whole([]float32{0.1, 0.6, 0.05, 0.25}, shape)), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Len(t, got, 1)
	d = openDecoder(t, m, Options{TopK: 2, MinScore: 0.5, TopAlways: true, Classes: []int{0, 1, 2}})
	got, _, err = d.Decode(result(identity, whole([]float32{0.1, 0.6, 0.05, 0.25}, shape)), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Equal(t, []postprocess.Detection{found(1, 0.6, 0, 0, 640, 480)}, got, "class 3 is not wanted")
	d = openDecoder(t, m, Options{TopK: 3, MinScore: 0.5, TopAlways: true})
	got, _, err = d.Decode(result(identity, whole([]float32{0.1, 0.6, 0.05, 0.25}, shape)), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Len(t, got, 3)
}

// Classes that do not exclude each other come out whenever they are over the threshold, however many they are.
func TestClassesThatDoNotExcludeEachOther(t *testing.T) {
	logit := func(p float64) float32 { return float32(math.Log(p / (1 - p))) }
	for _, test := range []struct {
		name       string
		activation engine.Activation
		numbers    []float32
		want       map[int]float32
	}{
		{"probabilities", engine.Sigmoid, []float32{0.9, 0.1, 0.8, 0.7, 0.6}, map[int]float32{0: 0.9, 2: 0.8, 3: 0.7, 4: 0.6}},
		{"probabilities whose sum is 1", engine.Sigmoid, []float32{0.6, 0.1, 0.1, 0.1, 0.1}, map[int]float32{0: 0.6}},
		{"logits", engine.Sigmoid, []float32{logit(0.9), logit(0.1), logit(0.8), -9, logit(0.6)}, map[int]float32{0: 0.9, 2: 0.8, 4: 0.6}},
		{"nothing", engine.Sigmoid, []float32{0.1, 0.2, 0.1, 0.1, 0.1}, map[int]float32{}},
		{"nobody knows, but they share nothing", "", []float32{0.9, 0.1, 0.8, 0.7, 0.6}, map[int]float32{0: 0.9, 2: 0.8, 3: 0.7, 4: 0.6}},
		{"nobody knows, and they share 1", "", []float32{0.6, 0.1, 0.1, 0.1, 0.1}, map[int]float32{0: 0.6}},
		{"logits that could be probabilities", engine.Softmax, []float32{0.9, 0.1, 0.8, 0.7, 0.6}, map[int]float32{}},
		{"no number", engine.Sigmoid, []float32{float32(math.NaN()), 0.9, float32(math.Inf(1)), 0, 0}, map[int]float32{1: 0.9}},
		{"a single class", "", []float32{0.7}, map[int]float32{0: 0.7}},
		{"a single logit", "", []float32{logit(0.98)}, map[int]float32{0: 0.98}},
	} {
		t.Run(test.name, func(t *testing.T) {
			shape := []int64{1, int64(len(test.numbers))}
			m := described(0, shape)
			m.Metadata.Task, m.Metadata.Activation = engine.Classify, test.activation
			d := openDecoder(t, m, Options{TopK: 2, MinScore: 0.5, TopAlways: test.activation == engine.Sigmoid})
			got, _, err := d.Decode(result(identity, whole(test.numbers, shape)), 0, 640, 480, nil)
			require.NoError(t, err)
			require.Len(t, got, len(test.want))
			for i, f := range got {
				assert.InDelta(t, test.want[f.Class], f.Score, 1e-6)
				assert.True(t, i == 0 || f.Score <= got[i-1].Score, "best first")
			}
			got = got[:0]
			assert.Zero(t, testing.AllocsPerRun(10, func() {
				if _, _, err := d.Decode(result(identity, whole(test.numbers, shape)), 0, 640, 480, got); err != nil {
					t.Error(err)
				}
			})-testing.AllocsPerRun(10, func() { _ = result(identity, whole(test.numbers, shape)) }))
		})
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	shape := []int64{1, 84, 2100}
	data := randomMap(random, 2100, 80, 100, 64, 320)
	dst := make([]postprocess.Detection, 0, 300)
	results := []*engine.Result{
		result(identity, whole(data, shape)), result(identity, halves(make([]uint16, len(data)), shape)), listed(identity, data[:600]),
	}
	for _, multi := range []bool{false, true} {
		d := openDecoder(t, described(80, shape), Options{Layout: LayoutYOLOv8, MultiLabel: multi})
		assert.Zero(t, testing.AllocsPerRun(20, func() {
			for _, r := range results {
				if _, _, err := d.Decode(r, 0, 640, 640, dst[:0]); err != nil {
					t.Error(err)
				}
				if _, err := d.CountBadScores(r, 0); err != nil {
					t.Error(err)
				}
			}
		}))
	}
}

func TestWidenEveryHalf(t *testing.T) {
	from := make([]uint16, 1<<16+3)
	for i := range from {
		from[i] = uint16(i)
	}
	to := make([]float32, len(from))
	scan.Widen(to, from)
	for i, half := range from {
		exponent, mantissa := int(half>>10&0x1f), float64(half&0x3ff)
		want := math.Ldexp(mantissa, -24)
		switch {
		case exponent == 31 && mantissa != 0:
			require.True(t, math.IsNaN(float64(to[i])), "%#x", half)
			continue
		case exponent == 31:
			want = math.Inf(1)
		case exponent != 0:
			want = math.Ldexp(1024+mantissa, exponent-25)
		}
		if half&0x8000 != 0 {
			want = math.Copysign(want, -1)
		}
		require.Equal(t, math.Float32bits(float32(want)), math.Float32bits(to[i]), "%#x", half)
	}
}
