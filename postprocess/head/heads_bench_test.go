package head

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan/readfloor"
)

// deployed is a head at the size that networks have, with about objects times ten boxes over the threshold.
type deployed struct {
	layout  Layout
	outputs []engine.TensorInfo
	scores  int // number of the output whose reading is the floor
	fill    func(random *rand.Rand, outputs [][]float32)
}

// scoreRows makes rows of so many numbers whose scores from the offset on are low but for about hits of them.
func scoreRows(random *rand.Rand, rows []float32, row, offset, hits int, low, high float32) {
	for i := range rows {
		if i%row >= offset {
			rows[i] = low * random.Float32()
		}
	}
	for range hits {
		rows[random.IntN(len(rows)/row)*row+offset+random.IntN(row-offset)] = high
	}
}

// deployedHeads is as long as its list of heads.
func deployedHeads() []deployed {
	info := func(name string, t engine.DataType, shape ...int64) engine.TensorInfo {
		return engine.TensorInfo{Name: name, Type: t, Shape: shape}
	}
	corners := func(random *rand.Rand, boxes []float32, size float32) {
		for i := 0; i+4 <= len(boxes); i += 4 {
			x, y := random.Float32()*size*.9, random.Float32()*size*.9
			boxes[i], boxes[i+1], boxes[i+2], boxes[i+3] = x, y, x+size*.1, y+size*.1
		}
	}
	queries := func(random *rand.Rand, out [][]float32, classes int) {
		for i := range out[0] {
			out[0][i] = .1 + .2*random.Float32()
		}
		scoreRows(random, out[1], classes, 0, 0, 1, 0)
		for i := range out[1] {
			out[1][i] -= 6
		}
		for range 20 {
			out[1][random.IntN(len(out[1])/classes)*classes+random.IntN(classes-1)] = 4
		}
	}
	chosen := func(random *rand.Rand, out [][]float32, size float32) {
		corners(random, out[0], size)
		for i := range out[1] {
			out[1][i], out[2][i] = 1/float32(i/4+1), float32(random.IntN(80))
		}
	}
	return []deployed{
		{"yolox", []engine.TensorInfo{info("output", 0, 1, 8400, 85)}, 0, func(r *rand.Rand, out [][]float32) {
			scoreRows(r, out[0], 85, 5, 0, .2, 0)
			for i := 0; i < len(out[0]); i += 85 {
				out[0][i+4] = .2 * r.Float32()
			}
			for range 200 {
				at := r.IntN(8400) * 85
				out[0][at+4], out[0][at+5+r.IntN(80)] = .9, .9
			}
		}},
		{"nanodet", []engine.TensorInfo{info("output", 0, 1, 8500, 112)}, 0, func(r *rand.Rand, out [][]float32) {
			scoreRows(r, out[0], 112, 0, 200, .2, .9)
		}},
		{"yolo-nas", []engine.TensorInfo{info("boxes", 0, 1, 8400, 4), info("scores", 0, 1, 8400, 80)}, 1, func(r *rand.Rand, out [][]float32) {
			corners(r, out[0], 640)
			scoreRows(r, out[1], 80, 0, 200, .2, .9)
		}},
		{"ssd", []engine.TensorInfo{info("boxes", 0, 1, 3000, 4), info("scores", 0, 1, 3000, 91)}, 1, func(r *rand.Rand, out [][]float32) {
			corners(r, out[0], 1)
			scoreRows(r, out[1], 91, 1, 100, .2, .9)
		}},
		{"ultralytics-rtdetr", []engine.TensorInfo{info("output0", 0, 1, 300, 84)}, 0, func(r *rand.Rand, out [][]float32) {
			for i := range out[0] {
				out[0][i] = .1 + .1*r.Float32()
			}
			scoreRows(r, out[0], 84, 4, 20, .2, .9)
		}},
		{"rfdetr", []engine.TensorInfo{info("dets", 0, 1, 300, 4), info("labels", 0, 1, 300, 91)}, 1, func(r *rand.Rand, out [][]float32) {
			queries(r, out, 91)
		}},
		{"rfdetr-segment", []engine.TensorInfo{
			info("dets", 0, 1, 200, 4), info("labels", 0, 1, 200, 91), info("masks", 0, 1, 200, 108, 108),
		}, 2, func(r *rand.Rand, out [][]float32) {
			queries(r, out, 91)
			for i := range out[2] {
				x, y := float64(i%108-r.IntN(2)), float64(i/108%108)
				out[2][i] = float32(12 - math.Hypot(x-50, y-50)) // an object of about 24 points across
			}
		}},
		{"detr-sigmoid", []engine.TensorInfo{
			info("pred_boxes", 0, 1, 300, 4), info("logits", 0, 1, 300, 80),
		}, 1, func(r *rand.Rand, out [][]float32) {
			queries(r, out, 80)
		}},
		{"detr", []engine.TensorInfo{info("pred_boxes", 0, 1, 100, 4), info("logits", 0, 1, 100, 92)}, 1, func(r *rand.Rand, out [][]float32) {
			queries(r, out, 92)
			for i := 91; i < len(out[1]); i += 92 {
				out[1][i] = 1
			}
		}},
		{
			"rtdetr",
			[]engine.TensorInfo{info("boxes", 0, 1, 300, 4), info("scores", 0, 1, 300), info("labels", engine.Int64, 1, 300)},
			0,
			func(r *rand.Rand, out [][]float32) { chosen(r, out, 640) },
		},
		{
			"nms",
			[]engine.TensorInfo{
				info("det_boxes", 0, 1, 100, 4), info("det_scores", 0, 1, 100), info("det_classes", engine.Int32, 1, 100), info("num_dets", 0, 1, 1),
			},
			0,
			func(r *rand.Rand, out [][]float32) { chosen(r, out, 640); out[3][0] = 20 },
		},
	}
}

// BenchmarkHeads prints for each head the time of decoding over that of reading its largest output once in C ("x-floor"), the two
// interleaved.
func BenchmarkHeads(b *testing.B) {
	for _, c := range deployedHeads() {
		b.Run(string(c.layout), func(b *testing.B) {
			random := rand.New(rand.NewPCG(3, 5))
			m := &engine.Model{Width: 640, Height: 640, Outputs: c.outputs}
			given := result(engine.Transform{ScaleX: 0.333, ScaleY: 0.333})
			numbers := make([][]float32, len(c.outputs))
			for i, o := range c.outputs {
				numbers[i] = make([]float32, engine.Elements(o.Shape))
			}
			c.fill(random, numbers)
			for i, o := range c.outputs {
				tensor := whole(numbers[i], o.Shape)
				switch o.Type {
				case engine.Int32:
					tensor.Data = integers[int32](numbers[i])
				case engine.Int64:
					tensor.Data = integers[int64](numbers[i])
				}
				tensor.Type = o.Type
				given.Outputs = append(given.Outputs, tensor)
			}
			d, err := NewDecoder(m, Options{Layout: c.layout})
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]postprocess.Detection, 0, 300)
			decode := func() {
				var err error
				if dst, _, err = d.Decode(given, 0, 1920, 1920, dst[:0]); err != nil {
					b.Fatal(err)
				}
			}
			counted := 0
			floor := func() { counted += readfloor.Count(numbers[c.scores], 0.25) }
			decode()
			if len(dst) == 0 {
				b.Fatal("nothing found")
			}
			overFloor(b, decode, floor, 40)
			b.ReportMetric(float64(len(dst)), "detections")
		})
	}
}

func integers[T int32 | int64](numbers []float32) []byte {
	list := make([]T, len(numbers))
	for i, v := range numbers {
		list[i] = T(v)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), int(unsafe.Sizeof(list[0]))*len(list))
}
