package head

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// bytesOf are the bytes of numbers, as an engine gives them.
func bytesOf[T any](data []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(data[0])))
}

// mapped opens a decoder for a network of 640x480 that gives a tensor as its only output.
func mapped(t testing.TB, task engine.Task, labels int, output *engine.Tensor) *Decoder {
	t.Helper()
	m := described(labels, output.Shape)
	m.Height, m.Outputs[0].Type, m.Metadata.Task = 480, output.Type, task
	d := openDecoder(t, m, Options{})
	return d
}

// letterboxed is an image of 1000x500 in the middle of 640x480: 80 rows above and below it are bars.
func letterboxed() engine.Transform { return engine.Transform{ScaleX: .64, ScaleY: .64, PadY: 80} }

// The class of a cell is that of its highest score, the first one of equals, and the cells are those whose centres are in the image.
func TestSemanticIsTheHighestScore(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, planes := range []int{2, 3, 19, 21, 150, 255} {
		for _, grid := range []image.Point{{160, 120}, {80, 60}, {157, 119}} {
			scores := make([]float32, planes*grid.X*grid.Y)
			for i := range scores {
				scores[i] = float32(random.IntN(40)) - 20 // with many equals
			}
			output := whole(scores, []int64{1, int64(planes), int64(grid.Y), int64(grid.X)})
			d := mapped(t, engine.Semantic, planes, &output)
			for range 2 { // memory that is used again changes nothing
				found, stats, err := d.Decode(result(letterboxed(), output), 0, 1000, 500, nil)
				require.NoError(t, err)
				require.Empty(t, found)
				require.Zero(t, stats.UnknownPixels)
			}
			m := d.Map(0)
			require.NotNil(t, m)
			first := 0
			for row := range grid.Y {
				y := (float64(row)+.5)*480/float64(grid.Y) - 80
				if y < 0 || y >= 320 {
					continue
				}
				if first == 0 {
					first = row
				}
				for column := range grid.X {
					cell, best := row*grid.X+column, 0
					for class := range planes {
						if scores[class*grid.X*grid.Y+cell] > scores[best*grid.X*grid.Y+cell] {
							best = class
						}
					}
					require.Equal(t, uint8(best), m.Classes[(row-first)*m.Width+column], "%d planes of %v at %d, %d", planes, grid, column, row)
				}
			}
			assert.Equal(t, grid.X, m.Width)
			assert.Len(t, m.Classes, m.Width*m.Height)
			x, y := m.Centre(0, 0)
			assert.InDelta(t, .5*640/float64(grid.X)/.64, x, 1e-3)
			assert.InDelta(t, ((float64(first)+.5)*480/float64(grid.Y)-80)/.64, y, 1e-3)
		}
	}
}

// A network that ends in argmax says the same in any type; what is none of the labels is no class.
func TestSemanticOfClassNumbers(t *testing.T) {
	numbers := []int64{0, 1, 2, 3, -1, 255, 300, 1 << 40, 2, 1, 0, 0}
	want := []uint8{0, 1, 2, 255, 255, 255, 255, 255, 2, 1, 0, 0}
	for _, shape := range [][]int64{{1, 30, 40}, {1, 1, 30, 40}} {
		var wide []int64
		var middle []int32
		var narrow []uint8
		for range 100 {
			for _, n := range numbers {
				wide, middle, narrow = append(wide, n), append(middle, int32(min(n, 1<<30))), append(narrow, uint8(min(max(n, -1), 255)))
			}
		}
		for _, output := range []engine.Tensor{
			{Type: engine.Int64, Shape: shape, Data: bytesOf(wide)},
			{Type: engine.Int32, Shape: shape, Data: bytesOf(middle)},
			{Type: engine.Uint8, Shape: shape, Data: narrow},
		} {
			d := mapped(t, engine.Semantic, 3, &output)
			_, stats, err := d.Decode(result(engine.Transform{ScaleX: 1, ScaleY: 1}, output), 0, 640, 480, nil)
			require.NoError(t, err)
			assert.Equal(t, want, d.Map(0).Classes[:12], output.Type)
			assert.Equal(t, 500, stats.UnknownPixels)
		}
	}
}

func TestSemanticNumbersClassesByTheLabels(t *testing.T) {
	// A background without a label is no class.
	scores := []float32{
		9, 0, 0, 0, // background
		0, 9, 0, 0,
		0, 0, 9, 9,
	}
	grid := []int64{1, 3, 30, 40}
	all := make([]float32, 3*1200)
	for plane := range 3 {
		for cell := range 1200 {
			all[plane*1200+cell] = scores[plane*4+cell%4]
		}
	}
	output := whole(all, grid)
	d := mapped(t, engine.Semantic, 2, &output)
	_, _, err := d.Decode(result(engine.Transform{ScaleX: 1, ScaleY: 1}, output), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Equal(t, []uint8{255, 0, 1, 1}, d.Map(0).Classes[:4])
	// With one label the network says where it is.
	one := make([]uint8, 1200)
	one[7] = 1
	output = engine.Tensor{Type: engine.Uint8, Shape: []int64{1, 30, 40}, Data: one}
	d = mapped(t, engine.Semantic, 1, &output)
	_, _, err = d.Decode(result(engine.Transform{ScaleX: 1, ScaleY: 1}, output), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Equal(t, uint8(0), d.Map(0).Classes[7])
	assert.Equal(t, uint8(postprocess.NoClass), d.Map(0).Classes[6])
	// What is not wanted is no class either.
	output = whole(all, grid)
	m := described(3, grid)
	m.Height, m.Metadata.Task = 480, engine.Semantic
	d = openDecoder(t, m, Options{Classes: []int{2}})
	_, _, err = d.Decode(result(engine.Transform{ScaleX: 1, ScaleY: 1}, output), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Equal(t, []uint8{255, 255, 2, 2}, d.Map(0).Classes[:4])
}

func TestSemanticOfNotANumber(t *testing.T) {
	nan := float32(math.NaN())
	scores := make([]float32, 2*1200)
	scores[5], scores[1200+6] = nan, nan
	output := whole(scores, []int64{1, 2, 30, 40})
	d := mapped(t, engine.Semantic, 2, &output)
	_, stats, err := d.Decode(result(engine.Transform{ScaleX: 1, ScaleY: 1}, output), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Equal(t, []uint8{255, 0}, d.Map(0).Classes[5:7])
	assert.Equal(t, 1, stats.UnknownPixels)
	impossible, err := d.CountBadScores(result(engine.Transform{ScaleX: 1, ScaleY: 1}, output), 0)
	require.NoError(t, err)
	assert.Zero(t, impossible)
}

func TestDepthIsWhatTheNetworkGives(t *testing.T) {
	depths := make([]float32, 160*120)
	for i := range depths {
		depths[i] = float32(i) / 7
	}
	depths[70*160+9] = float32(math.Inf(1))
	for _, shape := range [][]int64{{1, 120, 160}, {1, 1, 120, 160}} {
		output := whole(depths, shape)
		d := mapped(t, engine.Depth, 0, &output)
		_, stats, err := d.Decode(result(letterboxed(), output), 0, 1000, 500, nil)
		require.NoError(t, err)
		m := d.Map(0)
		require.NotNil(t, m)
		assert.Equal(t, 80, m.Height)
		assert.Equal(t, depths[20*160:100*160], m.Depths)
		assert.Nil(t, m.Classes)
		assert.Zero(t, stats.UnknownPixels, "a map may hold numbers that are none")
	}
}

// Where nothing of the network's input is image there is no map, and no error.
func TestMapOutsideTheImage(t *testing.T) {
	output := whole(make([]float32, 2*1200), []int64{1, 2, 30, 40})
	d := mapped(t, engine.Semantic, 2, &output)
	_, _, err := d.Decode(result(engine.Transform{ScaleX: 1, ScaleY: 1, PadX: 9000}, output), 0, 640, 480, nil)
	require.NoError(t, err)
	assert.Nil(t, d.Map(0))
	assert.Nil(t, d.Map(1))
}

// FuzzMaps takes any numbers, types, shapes and transforms: an error, no map, or a sane one.
func FuzzMaps(f *testing.F) {
	f.Add([]byte{0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0x3f}, uint8(0), int16(3), int16(30), int16(40), float32(1), float32(0))
	f.Add([]byte{7, 0, 0, 0, 0, 0, 0, 0x80}, uint8(1), int16(1), int16(30), int16(40), float32(.3), float32(80))
	f.Add([]byte{255, 3}, uint8(2), int16(1), int16(31), int16(41), float32(2), float32(-400))
	f.Add([]byte{255, 3, 1}, uint8(3), int16(1), int16(30), int16(-1), float32(1e-9), float32(1e9))
	f.Fuzz(func(t *testing.T, numbers []byte, kind uint8, planes, height, width int16, scale, pad float32) {
		types := []engine.DataType{engine.Float32, engine.Int64, engine.Uint8, engine.Int32, engine.Float16}
		opened := engine.Tensor{Type: types[int(kind)%len(types)], Shape: []int64{2, int64(planes), 30, 40}}
		m := described(3, opened.Shape)
		m.Height, m.Outputs[0].Type = 480, opened.Type
		m.Metadata.Task = []engine.Task{engine.Semantic, engine.Depth}[kind/128]
		d, err := NewDecoder(m, Options{})
		if err != nil {
			return
		}
		given := opened
		given.Shape = []int64{2, int64(planes), int64(height), int64(width)}
		size := 2 * max(int(planes), 0) * max(int(height), 0) * max(int(width), 0) * given.Type.Size()
		if size > 1<<20 {
			return
		}
		memory := make([]uint64, size/8+1) // aligned as an engine's
		given.Data = bytesOf(memory)[:size]
		for from := 0; len(numbers) > 0 && from < size; from += 3 * len(numbers) {
			copy(given.Data[from:], numbers)
		}
		transform := engine.Transform{ScaleX: scale, ScaleY: scale, PadX: pad, PadY: -pad / 2}
		r := &engine.Result{Outputs: []engine.Tensor{given}, Transforms: []engine.Transform{transform, transform}}
		for number := range 2 {
			found, _, err := d.Decode(r, number, 100, 80, nil)
			if len(found) > 0 {
				t.Fatal("detections")
			}
			got := d.Map(number)
			if err != nil || got == nil {
				continue
			}
			if got.Width < 1 || got.Height < 1 || len(got.Classes)+len(got.Depths) != got.Width*got.Height {
				t.Fatalf("%dx%d with %d and %d cells", got.Width, got.Height, len(got.Classes), len(got.Depths))
			}
			for _, class := range got.Classes {
				if class > 2 && class != postprocess.NoClass {
					t.Fatalf("class %d", class)
				}
			}
			var reading postprocess.PixelStats
			reading.Measure(got, got.AppendSpans(nil))
			if column, row := got.CellAt(99, 79); column < 0 || column >= got.Width || row < 0 || row >= got.Height {
				t.Fatalf("cell %d, %d of %dx%d", column, row, got.Width, got.Height)
			}
		}
	})
}
