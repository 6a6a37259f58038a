package predict

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// rowsOf256 builds the end of a detector for 256x256 with so many classes, without its layers: boxes [1,N,4] and scores [1,N,nc], all
// zero but one row. The row scores .9 for its last class.
type rowsOf256 struct {
	*testnet.Builder
	classes, anchors, row int64
}

func newRows(classes, anchors int64) rowsOf256 {
	b := rowsOf256{testnet.NewBuilder(1), classes, anchors, 100}
	b.Input("images", 1, 3, 256, 256)
	return b
}

// values adds what the network computes: the constant plus nothing of the image, so that nothing can be folded.
func (b rowsOf256) values(name string, columns int64, row ...float32) string {
	data := make([]float32, b.anchors*columns)
	copy(data[b.row*columns:], row)
	zero := b.Node("ReduceMin", name+"/least", []string{"images"}, onnx.Int("keepdims", 0))
	zero = b.Node("Mul", name+"/none", []string{zero, b.Floats(name+".zero", []float32{0}, 1)})
	return b.Node("Add", name, []string{b.Floats(name+".values", data, 1, b.anchors, columns), zero})
}

// scores returns sigmoid scores of all classes.
func (b rowsOf256) scores() string {
	row := make([]float32, b.classes)
	row[b.classes-1] = .9
	low, high := b.Floats("low", []float32{0}), b.Floats("high", []float32{1})
	return b.Node("Clip", "scores", []string{b.values("class", b.classes, row...), low, high})
}

// deepStream ends the network as the exporters of DeepStream-Yolo do: with torch.max over the scores.
func (b rowsOf256) deepStream(t *testing.T) []byte {
	boxes := b.values("boxes", 4, 64, 64, 192, 128)
	scores := b.scores()
	best := b.Node("ReduceMax", "best", []string{scores}, onnx.Ints("axes", -1))
	class := b.Node("ArgMax", "class", []string{scores}, onnx.Int("axis", -1))
	class = b.Node("Cast", "label", []string{class}, onnx.Int("to", int64(onnx.TensorProto_FLOAT)))
	return b.end(t, "output", 6, boxes, best, class)
}

// end joins columns to the output.
func (b rowsOf256) end(t *testing.T, output string, columns int64, parts ...string) []byte {
	t.Helper()
	b.Rename(b.Node("Concat", "rows", parts, onnx.Int("axis", -1)), output)
	b.Output(output, 1, b.anchors, columns)
	data, err := b.Model(13).Bytes()
	require.NoError(t, err)
	return data
}

// A network of DeepStream-Yolo is read as one whatever the number of its classes, and those with rows as long are not read as one. Where
// the file has no graph, as on a server, it is refused with fewer than three labels.
func TestRowsOfSixByNumberOfClasses(t *testing.T) {
	const cells, three = 64*64 + 32*32 + 16*16 + 8*8, 3 * (32*32 + 16*16 + 8*8) // of 256x256
	score := []float32{128, 96, 128, 64, 1}                                     // the box from 64, 64 to 192, 128, and an objectness
	formats := []struct {
		name    string
		anchors int64
		layout  string // recognised
		classes []int64
		build   func(t *testing.T, b rowsOf256) []byte
	}{
		{"DeepStream-Yolo", cells, "deepstream-yolo", []int64{1, 2, 3, 80}, func(t *testing.T, b rowsOf256) []byte { return b.deepStream(t) }},
		{"DeepStream-Yolo of YOLOv5", three, "deepstream-yolo", []int64{1, 2, 3, 80}, func(t *testing.T, b rowsOf256) []byte {
			return b.deepStream(t)
		}},
		{"DeepStream-Yolo of a network of queries", 300, "end2end", []int64{1, 2, 3, 80}, func(t *testing.T, b rowsOf256) []byte {
			return b.deepStream(t)
		}},
		{"YOLOX", cells, "yolox", []int64{1, 2, 3, 80}, func(t *testing.T, b rowsOf256) []byte {
			cell := []float32{128/4 - 36, 96/4 - 1, float32(math.Log(128 / 4)), float32(math.Log(64 / 4)), 1} // row 100 is the cell at 36, 1
			return b.end(t, "output", 5+b.classes, b.values("boxes", 5, cell...), b.scores())
		}},
		{"YOLOv5", three, "yolov5", []int64{1, 2, 3, 80}, func(t *testing.T, b rowsOf256) []byte {
			return b.end(t, "output", 5+b.classes, b.values("boxes", 5, score...), b.scores())
		}},
		{"YOLOv6", cells, "yolov6", []int64{1, 2, 3, 80}, func(t *testing.T, b rowsOf256) []byte {
			return b.end(t, "outputs", 5+b.classes, b.values("boxes", 5, score...), b.scores())
		}},
		{"YOLOv8, transposed", cells, "yolov8-rows", []int64{1, 2, 3, 80}, func(t *testing.T, b rowsOf256) []byte {
			return b.end(t, "output", 4+b.classes, b.values("boxes", 4, score[:4]...), b.scores())
		}},
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-40s%17s%17s%17s%17s\n", "classes", "1", "2", "3", "80")
	for _, f := range formats {
		fmt.Fprintf(&table, "%-40s", f.name)
		for _, classes := range f.classes {
			t.Run(fmt.Sprintf("%s, %d", f.name, classes), func(t *testing.T) {
				o := quiet(Options{Model: "network.onnx", Backend: "onnxruntime=cpu", LabelsFile: labelsOf(t, int(classes))})
				o.Bytes = f.build(t, newRows(classes, f.anchors))
				n, err := Open(t.Context(), o)
				require.NoError(t, err)
				defer n.Close()
				assert.Equal(t, f.layout, string(n.Model().Recognised.Layout))
				seen, err := Run(n, engine.Image{Data: make([]byte, 256*256), Width: 256, Height: 256, Stride: 256, Format: engine.GRAY8})
				require.NoError(t, err)
				require.Len(t, seen[0].Detections, 1)
				found := seen[0].Detections[0]
				for i, side := range []float32{found.Box.X1 - 64, found.Box.Y1 - 64, found.Box.X2 - 192, found.Box.Y2 - 128} {
					assert.InDelta(t, 0, side, 1e-3, i)
				}
				assert.Equal(t, int(classes)-1, found.Class)
				assert.InDelta(t, .9, found.Score, 1e-6)
				fmt.Fprintf(&table, "%17s", "right")
			})
		}
		table.WriteByte('\n')
	}
	for _, shape := range [][]int64{{1, 8400, 6}, {1, 25200, 6}, {1, 300, 6}} {
		fmt.Fprintf(&table, "%-40s", fmt.Sprintf("%v without a graph", shape))
		for _, labels := range []int{1, 2, 3, 80} {
			unknown := exported{[]tensor{out("images", 1, 3, 640, 640)}, []tensor{out("output", shape...)}, nil}
			o := quiet(Options{Model: "network.onnx", Backend: "onnxruntime=cpu", LabelsFile: labelsOf(t, labels)})
			o.Bytes = unknown.bytes(t)
			d, err := Inspect(t.Context(), o)
			require.NoError(t, err)
			if labels < 3 && (shape[1] > 1000 || labels == 2) {
				require.Contains(t, d.Problem, "(", "%v with %d labels has a way on", shape, labels)
				fmt.Fprintf(&table, "%17s", "refused")
				continue
			}
			require.NotNil(t, d.Head, "%v with %d labels: %s", shape, labels, d.Problem)
			assert.Equal(t, shape[1] == 300, d.Head.Layout == "end2end")
			assert.Equal(t, shape[1] > 1000, d.Head.Layout == "deepstream-yolo")
			fmt.Fprintf(&table, "%17s", d.Head.Layout)
		}
		table.WriteByte('\n')
	}
	fmt.Fprintf(&table, "%-40s", "DeepStream-Yolo before 2024, 3 outputs")
	for _, labels := range []int{1, 2, 3, 80} {
		before := exported{[]tensor{out("images", 1, 3, 640, 640)}, []tensor{
			out("boxes", 1, 8400, 4), out("scores", 1, 8400, 1), out("classes", 1, 8400, 1),
		}, nil}
		o := quiet(Options{Model: "network.onnx", Backend: "onnxruntime=cpu", LabelsFile: labelsOf(t, labels)})
		o.Bytes = before.bytes(t)
		d, err := Inspect(t.Context(), o)
		require.NoError(t, err)
		require.Nil(t, d.Head, labels)
		fmt.Fprintf(&table, "%17s", "refused")
	}
	t.Log(table.String())
}

// labelsOf writes a file of so many labels, COCO's for 80.
func labelsOf(t *testing.T, count int) string {
	t.Helper()
	names := engine.COCOLabels()
	if count != 80 {
		names = ""
		for i := range count {
			names += fmt.Sprintf("part%d\n", i)
		}
	}
	path := filepath.Join(t.TempDir(), "labels.txt")
	require.NoError(t, os.WriteFile(path, []byte(names), 0o600))
	return path
}

// Ultralytics' RT-DETR is known by its graph, whatever its description says: images are stretched, and boxes are shares of the input.
func TestRTDETRByItsGraph(t *testing.T) {
	for _, classes := range []int64{1, 2, 3, 80} {
		for _, best := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d classes, rows of the best %v", classes, best), func(t *testing.T) {
				b := newRows(classes, 300)
				boxes := b.values("boxes", 4, 0, 0, 0, 0) // before the sigmoid: the middle, and half of each side
				boxes = b.Node("Sigmoid", "boxes", []string{boxes})
				boxes = b.Node("Unsqueeze", "stack", []string{boxes, b.Ints("first", 0)})
				boxes = b.Node("Squeeze", "layer", []string{boxes, b.Ints("first", 0)})
				var data []byte
				want := "ultralytics-rtdetr"
				if best {
					want += "-end2end"
					scores := b.scores()
					class := b.Node("ArgMax", "class", []string{scores}, onnx.Int("axis", -1))
					class = b.Node("Cast", "label", []string{class}, onnx.Int("to", int64(onnx.TensorProto_FLOAT)))
					data = b.end(t, "output0", 6, boxes, b.Node("ReduceMax", "best", []string{scores}, onnx.Ints("axes", -1)), class)
				} else {
					data = b.end(t, "output0", 4+classes, boxes, b.scores())
				}
				file, err := onnx.Parse("rtdetr.onnx", data)
				require.NoError(t, err)
				for key, value := range ultralytics("detect", int(classes), "imgsz", "[256, 256]", "description", "Ultralytics best model") {
					file.SetMetadata(key, value)
				}
				o := quiet(Options{Model: "rtdetr.onnx", Backend: "onnxruntime=cpu"})
				o.Bytes, err = file.Bytes()
				require.NoError(t, err)
				n, err := Open(t.Context(), o)
				require.NoError(t, err)
				defer n.Close()
				assert.Equal(t, want, string(n.Model().Recognised.Layout))
				assert.Equal(t, "256x256: stretch, bilinear, pad 114, rgb, 0..1, nchw", Describe(n.Model()).Preprocessing)
				seen, err := Run(n, engine.Image{Data: make([]byte, 200*100), Width: 200, Height: 100, Stride: 200, Format: engine.GRAY8})
				require.NoError(t, err)
				require.Len(t, seen[0].Detections, 1)
				assert.Equal(t, postprocess.Box{X1: 50, Y1: 25, X2: 150, Y2: 75}, seen[0].Detections[0].Box)
				assert.Equal(t, int(classes)-1, seen[0].Detections[0].Class)
			})
		}
	}
}

// Without a graph, as in an engine plan, the shape alone shows an RT-DETR of three classes and more.
func TestRTDETRByItsShape(t *testing.T) {
	o := quiet(Options{Model: "rtdetr.onnx", Backend: "onnxruntime=cpu"})
	o.Bytes = exported{[]tensor{out("images", 1, 3, 640, 640)}, []tensor{out("output0", 1, 300, 84)}, ultralytics("detect", 80)}.bytes(t)
	d, err := Inspect(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, "640x640: stretch, bilinear, pad 114, rgb, 0..1, nchw", d.Preprocessing)
	o.Metadata.Preprocess = engine.Preprocess{Preset: "ultralytics"} // a setting
	d, err = Inspect(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, "640x640: letterbox, bilinear, pad 114, rgb, 0..1, nchw", d.Preprocessing)
}

// Boxes of two corners in a layout of centre and sides are found within the first images, and those of centre and sides never.
func TestCornersInsteadOfCentreAndSides(t *testing.T) {
	const cells = 64*64 + 32*32 + 16*16 + 8*8
	open := func(t *testing.T, box ...float32) *Network {
		b := newRows(3, cells)
		o := quiet(Options{Model: "network.onnx", Backend: "onnxruntime=cpu", LabelsFile: labelsOf(t, 3)})
		o.Slots = 2
		o.Bytes = b.end(t, "output0", 7, b.values("boxes", 4, box...), b.scores())
		n, err := Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { n.Close() })
		return n
	}
	image := engine.Image{Data: make([]byte, 256*256), Width: 256, Height: 256, Stride: 256, Format: engine.GRAY8}
	for _, box := range [][]float32{{200, 40, 250, 120}, {10, 10, 250, 250}, {60, 190, 140, 256}, {0, 100, 100, 140}} {
		after, _, c := see(t, open(t, box...), times(100, image)...)
		assert.Equal(t, ContradictionImages, after, box)
		require.ErrorContains(t, c, "30 images in a row had boxes of two corners instead of centre and sides", box)
	}
	for _, box := range [][]float32{{128, 128, 256, 256}, {20, 20, 60, 60}, {225, 80, 50, 80}, {128, 250, 40, 12}, {5, 5, 30, 30}} {
		_, _, c := see(t, open(t, box...), times(100, image)...)
		assert.Nil(t, c, box)
	}
}

// Heat maps that pass as class scores by their shape and labels are found within the first images; class scores never are.
func TestHeatMapsInsteadOfScores(t *testing.T) {
	const side, classes = 64, 17
	open := func(t *testing.T, layout string, value func(class, x, y int) float32) *Network {
		data := make([]float32, classes*side*side)
		for i := range data {
			data[i] = value(i/side/side, i%side, i/side%side)
		}
		b := testnet.NewBuilder(1)
		b.Input("images", 1, 3, side, side)
		zero := b.Node("ReduceMin", "least", []string{"images"}, onnx.Int("keepdims", 0))
		zero = b.Node("Mul", "none", []string{zero, b.Floats("zero", []float32{0}, 1)})
		b.Rename(b.Node("Add", "maps", []string{b.Floats("values", data, 1, classes, side, side), zero}), "output")
		b.Output("output", 1, classes, side, side)
		o := quiet(Options{Model: "network.onnx", Backend: "onnxruntime=cpu", LabelsFile: labelsOf(t, classes)})
		o.Slots = 2
		o.Decoding.Layout = head.Layout(layout)
		var err error
		o.Bytes, err = b.Model(13).Bytes()
		require.NoError(t, err)
		n, err := Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { n.Close() })
		require.Equal(t, head.LayoutSemantic, n.Model().Recognised.Layout)
		return n
	}
	peaks := func(class, x, y int) float32 {
		dx, dy := float64(x-3*class-5), float64(y-2*class-9)
		return float32(.9*math.Exp(-(dx*dx+dy*dy)/8)) + .01*float32((x+y)%3-1)
	}
	image := engine.Image{Data: make([]byte, side*side), Width: side, Height: side, Stride: side, Format: engine.GRAY8}
	after, _, c := see(t, open(t, "", peaks), times(100, image)...)
	assert.Equal(t, ContradictionImages, after)
	require.ErrorContains(t, c, "30 images in a row had heat maps instead of class scores")
	_, _, c = see(t, open(t, "semantic", peaks), times(100, image)...)
	assert.Nil(t, c, "a selected layout is taken at its word")
	for name, value := range map[string]func(class, x, y int) float32{
		"logits": func(class, x, y int) float32 { return float32((class*7+x/9*5+y/7)%11) - 5 },
		"after softmax": func(class, x, y int) float32 {
			return map[bool]float32{true: .9, false: .1 / (classes - 1)}[class == x*classes/side]
		},
		"nothing at all": func(class, x, y int) float32 { return 0 },
	} {
		_, _, c := see(t, open(t, "", value), times(100, image)...)
		assert.Nil(t, c, name)
	}
}
