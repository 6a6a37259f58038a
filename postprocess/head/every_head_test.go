package head

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// example is what a network of a head gave for an image, in which something is found.
type example struct {
	layout Layout
	open   func(t testing.TB) (*Decoder, *engine.Result)
}

// examples have at least one network of every head: those of heads.json and tasks.json, and here those that are in neither.
func examples(t testing.TB) (all []example) {
	identity := engine.Transform{ScaleX: 1, ScaleY: 1}
	for _, c := range readHeads(t) {
		all = append(all, example{c.Layout, func(t testing.TB) (*Decoder, *engine.Result) {
			m, given := c.open(t, 64, identity)
			d := openDecoder(t, m, Options{Layout: c.Layout, MinScore: c.Confidence})
			return d, given
		}})
	}
	for _, c := range readTasks(t) {
		all = append(all, example{c.Layout, func(t testing.TB) (*Decoder, *engine.Result) {
			m, given := c.open(t, 64, identity)
			d := openDecoder(t, m, Options{Layout: c.Layout, MinScore: c.Confidence})
			return d, given
		}})
	}
	plain := func(layout Layout, task engine.Task, labels int, shape []int64, fill func(*rand.Rand, []float32)) {
		all = append(all, example{layout, func(t testing.TB) (*Decoder, *engine.Result) {
			m := described(labels, shape)
			m.Width, m.Height, m.Metadata.Task = 64, 64, task
			d := openDecoder(t, m, Options{Layout: layout})
			data := make([]float32, engine.Elements(shape))
			fill(rand.New(rand.NewPCG(1, 2)), data)
			return d, result(identity, whole(data, shape))
		}})
	}
	const boxes = 8*8 + 4*4 + 2*2 // of a network of 64x64
	plain(LayoutYOLOv8, "", 3, []int64{1, 7, boxes}, func(random *rand.Rand, data []float32) {
		copy(data, randomMap(random, boxes, 3, 20, 50, 64))
	})
	rows := func(row int) func(*rand.Rand, []float32) {
		return func(random *rand.Rand, data []float32) {
			for i := 0; i < len(data); i += row {
				x, y := 40*random.Float32(), 40*random.Float32()
				copy(data[i:], []float32{x, y, x + 10, y + 10, 0.9, 1, 0.9, 0.1})
			}
		}
	}
	plain(LayoutYOLOv5, "", 3, []int64{1, 3 * boxes, 8}, rows(8))
	plain(LayoutYOLOv8Rows, "", 4, []int64{1, boxes, 8}, rows(8))
	plain(LayoutEnd2End, "", 3, []int64{1, 300, 6}, rows(6))
	plain(LayoutYOLOv7NMS, "", 3, []int64{20, 7}, func(random *rand.Rand, data []float32) {
		for i := 0; i < len(data); i += 7 {
			x, y := 40*random.Float32(), 40*random.Float32()
			copy(data[i:], []float32{0, x, y, x + 10, y + 10, 1, 0.9})
		}
	})
	plain(LayoutDeepStreamYOLO, "", 3, []int64{1, boxes, 6}, rows(6))
	plain(LayoutPicoDet, "", 3, []int64{1, boxes, 3 + BoxLogits}, picoRows)
	uniform := func(random *rand.Rand, data []float32) {
		for i := range data {
			data[i] = random.Float32()
		}
	}
	plain(LayoutClassify, engine.Classify, 3, []int64{1, 3}, uniform)
	plain(LayoutEmbedding, engine.Embed, 0, []int64{1, 256}, uniform)
	plain(LayoutSemantic, engine.Semantic, 3, []int64{1, 3, 16, 16}, uniform)
	plain(LayoutDepth, engine.Depth, 0, []int64{1, 16, 16}, uniform)
	for layout, last := range map[Layout]bool{LayoutCTC: false, LayoutCTCBlankLast: true} {
		data, shape := line("__AAB_B_1__", last, false)
		plain(layout, engine.Read, len(alphabet), shape, func(_ *rand.Rand, into []float32) { copy(into, data) })
	}
	return all
}

// picoRows are rows of a PicoDet of three classes whose every third box is sure, one to three cells from its middle.
func picoRows(_ *rand.Rand, data []float32) {
	const row = 3 + BoxLogits
	for box := 0; box*row < len(data); box += 3 {
		at := data[box*row:]
		at[box%9/3] = 0.9
		for side := range 4 {
			at[3+side*scan.DistanceBins+1+(box+side)%3] = 100
		}
	}
}

// Distances of a PicoDet count from the middle of a cell, and its boxes may end beyond the image while they suppress each other.
func TestPicoDetCountsFromTheMiddleOfACell(t *testing.T) {
	const row, cells = 3 + BoxLogits, 8*8 + 4*4 + 2*2 + 1
	m := described(3, []int64{1, cells, row})
	m.Width, m.Height = 64, 64
	d := openDecoder(t, m, Options{Layout: LayoutPicoDet})
	data := make([]float32, cells*row)
	at := data[(64+4*2+1)*row:] // third row, second column of stride 16
	at[2] = 0.9
	for side, cells := range []int{1, 2, 0, 3} {
		at[3+side*scan.DistanceBins+cells] = 100
	}
	found, _, err := d.Decode(result(engine.Transform{ScaleX: 1, ScaleY: 1}, whole(data, []int64{1, cells, row})), 0, 64, 64, nil)
	require.NoError(t, err)
	require.Equal(t, []postprocess.Detection{{Box: postprocess.Box{X1: 8, Y1: 8, X2: 24, Y2: 64}, Score: 0.9, Class: 2}}, found)
}

// TestExamplesHaveEveryHead holds the list above against the heads that there are: a new one must be tried there.
func TestExamplesHaveEveryHead(t *testing.T) {
	seen := map[Layout]bool{}
	for _, e := range examples(t) {
		seen[e.layout] = true
	}
	for _, layout := range layouts() {
		require.True(t, layout == LayoutAuto || seen[layout], layout)
	}
}

// FuzzEveryHead changes what a network of every head gave, numbers here and the shape of an output there: an error or sane detections.
func FuzzEveryHead(f *testing.F) {
	all := examples(f)
	for i := range all {
		f.Add(uint8(i), uint16(0), []byte{0, 0, 0, 0}, uint8(0), int16(1))
		f.Add(uint8(i), uint16(33), []byte{0, 0, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x80, 0x7f}, uint8(1), int16(-1))
		f.Add(uint8(i), uint16(301), []byte{0, 0, 0x80, 0xff}, uint8(131), int16(7))
	}
	f.Fuzz(func(t *testing.T, number uint8, at uint16, bytes []byte, axis uint8, size int16) {
		d, given := all[int(number)%len(all)].open(t)
		for i := range given.Outputs {
			o := &given.Outputs[i]
			o.Data = aligned(o.Data)
			for from := int(at); len(bytes) > 0 && from < len(o.Data); from += 4 * (97 + len(bytes)) {
				copy(o.Data[from:], bytes)
			}
			if axis >= 128 && int(axis)%len(given.Outputs) == i && len(o.Shape) > 0 {
				o.Shape = slices.Clone(o.Shape)
				o.Shape[int(axis/4)%len(o.Shape)] = int64(size)
			}
		}
		found, _, err := d.Decode(given, 0, 100, 80, nil)
		if err != nil && len(found) > 0 {
			t.Fatalf("%d detections with the error %v", len(found), err)
		}
		for _, f := range found {
			inside := 0 <= f.X1 && f.X1 <= f.X2 && f.X2 <= 100 && 0 <= f.Y1 && f.Y1 <= f.Y2 && f.Y2 <= 80
			if !inside || f.Class < 0 || !(f.Score >= 0 && f.Score <= scan.MaxScore) {
				t.Fatalf("bad finding %+v", f)
			}
		}
		_, _ = d.CountBadScores(given, 0)
	})
}
