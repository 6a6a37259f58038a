package quantize_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// side is the width and height of the networks' input in pixels.
const side = 64

// image returns a random network input.
func img() []float32 {
	random := rand.New(rand.NewPCG(7, 7))
	values := make([]float32, 3*side*side)
	for i := range values {
		values[i] = random.Float32()
	}
	return values
}

// apart returns the largest difference between two lists.
func apart(t *testing.T, a, b []float32) (largest float64) {
	t.Helper()
	require.Len(t, b, len(a))
	for i := range a {
		require.False(t, math.IsNaN(float64(b[i])))
		largest = max(largest, math.Abs(float64(a[i]-b[i])))
	}
	return largest
}

func TestFP16OfPublishedNetworks(t *testing.T) {
	for name, m := range map[string]*onnx.Model{
		"v8": yolo(testnet.YOLO{Wide: 8}).V8(), "v11": yolo(testnet.YOLO{Wide: 8, Dynamic: true}).V11(),
		"norms": yolo(testnet.YOLO{Norms: true, Wide: 8}).V11(),
	} {
		t.Run(name, func(t *testing.T) {
			want := run(t, m, img(), 1, 3, side, side)["output0"]
			half := m.Clone()
			report, err := quantize.ConvertFP16(half, quantize.FP16Options{})
			require.NoError(t, err)
			assert.Greater(t, report.Converted, 150)
			assert.Equal(t, "decodes the head's outputs", report.KeptFP32[nodeBefore(m, "output0")], "%v", report.KeptFP32)
			got := run(t, half, img(), 1, 3, side, side)["output0"]
			anchors := side*side/64 + side*side/256 + side*side/1024
			assert.Less(t, apart(t, want[:4*anchors], got[:4*anchors]), 2.0, "boxes in pixels")
			assert.Less(t, apart(t, want[4*anchors:], got[4*anchors:]), 0.03, "scores")

			before, err := m.Bytes()
			require.NoError(t, err)
			after, err := half.Bytes()
			require.NoError(t, err)
			assert.Less(t, float64(len(after)), 0.6*float64(len(before)), "weights take half of the bytes")
		})
	}
}

// TopK of the boxes stays in float32: indices beyond 2048 do not fit float16.
func TestFP16OfEndToEndNetwork(t *testing.T) {
	m := yolo(testnet.YOLO{Wide: 8}).V10()
	want := run(t, m, img(), 1, 3, side, side)["output0"]
	half := m.Clone()
	report, err := quantize.ConvertFP16(half, quantize.FP16Options{})
	require.NoError(t, err)
	for _, n := range half.Proto.Graph.Node {
		if n.GetOpType() == "TopK" || n.GetOpType() == "GatherElements" {
			assert.Equal(t, "decodes the head's outputs", report.KeptFP32[n.GetName()], n.GetName())
		}
	}
	got := run(t, half, img(), 1, 3, side, side)["output0"]
	require.Len(t, got, len(want))
	for row := range 10 { // box, score, class; near scores may change places
		assert.InDelta(t, want[6*row+4], got[6*row+4], 0.01)
	}
}

func TestFP16InputsAndOutputs(t *testing.T) {
	m := yolo(testnet.YOLO{Wide: 4}).V8()
	_, err := quantize.ConvertFP16(m, quantize.FP16Options{ConvertIO: true, ConvertTail: true})
	require.NoError(t, err)
	inputs, err := m.Inputs()
	require.NoError(t, err)
	outputs, err := m.Outputs()
	require.NoError(t, err)
	assert.Equal(t, engine.Float16, inputs[0].Type)
	assert.Equal(t, engine.Float16, outputs[0].Type)
	assert.Zero(t, m.Operators()["Cast"], "all of it is float16")
	data, err := m.Bytes()
	require.NoError(t, err)
	e, err := open(data)
	require.NoError(t, err)
	require.NoError(t, e.Close())

	m = yolo(testnet.YOLO{Wide: 4}).V8()
	_, err = quantize.ConvertFP16(m, quantize.FP16Options{ConvertTail: true})
	require.NoError(t, err)
	assert.Equal(t, 2, m.Operators()["Cast"], "one at the input, one at the output")
}

// small is a network of one convolution and what the test needs around it.
func small(weights []float32, around func(b *testnet.Builder, x string) string) *onnx.Model {
	b := testnet.NewBuilder(1)
	x := b.Input("x", 1, 1, 4, 4)
	w := b.Floats("w", weights, int64(len(weights)), 1, 1, 1)
	y := b.Node("Conv", "conv", []string{x, w})
	if around != nil {
		y = around(b, y)
	}
	y = b.Node("Conv", "last", []string{y, b.Random("v", 0, 1, 2, int64(len(weights)), 1, 1)})
	b.Output(b.Rename(y, "y"), 1, 2, -1, -1)
	return b.Model(17)
}

func TestFP16ReportsLosses(t *testing.T) {
	m := small([]float32{1e-9, -1e-9, 1e-6, 0.5, 0}, nil)
	report, err := quantize.ConvertFP16(m, quantize.FP16Options{})
	require.NoError(t, err)
	assert.Equal(t, []quantize.FP16Tensor{{Name: "w", Elements: 5, Underflows: 2, Subnormals: 1, Largest: 0.5}}, report.Tensors)

	// Weights beyond float16 keep their layer in float32 instead of being clipped.
	m = small([]float32{70000, 1}, nil)
	report, err = quantize.ConvertFP16(m, quantize.FP16Options{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"conv/Conv": "weights beyond float16 in w"}, report.KeptFP32)
	input := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	assert.Len(t, run(t, m, input, 1, 1, 4, 4)["y"], 32)

	m = small([]float32{1, 1}, nil)
	report, err = quantize.ConvertFP16(
		m,
		quantize.FP16Options{Ranges: quantize.Ranges{"conv/Conv_output_0": {Max: 1e5}}, Exclude: []string{"last/*"}},
	)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"conv/Conv": "measured values beyond float16 in conv/Conv_output_0", "last/Conv": "excluded"},
		report.KeptFP32)

	_, err = quantize.ConvertFP16(small([]float32{1}, nil), quantize.FP16Options{Exclude: []string{"nowhere"}})
	assert.EqualError(
		t,
		err,
		`quantize fp16: "nowhere" names no node of the model (give a node's name, a pattern such as /model.22/*/conv/Conv, or an operator such as MatMul)`,
	)
}

// Sizes computed from the input's shape stay exact, a Resize's scales stay float32, and an output that float16 nodes read keeps its name.
func TestFP16KeepsFixedTypes(t *testing.T) {
	m := small([]float32{1, 2}, func(b *testnet.Builder, x string) string {
		shape := b.Node("Shape", "shape", []string{x})
		sides := b.Node("Cast", "sides", []string{b.Node("Slice", "sides", []string{shape, b.Ints("two", 2), b.Ints("four", 4)})},
			onnx.Int("to", int64(onnx.TensorProto_FLOAT)))
		twice := b.Node("Floor", "twice", []string{b.Node("Mul", "twice", []string{sides, b.Floats("factor", []float32{2})})})
		size := b.Node("Cast", "size", []string{twice}, onnx.Int("to", int64(onnx.TensorProto_INT64)))
		all := b.Node("Concat", "all", []string{b.Node("Slice", "head", []string{shape, b.Ints("zero", 0), b.Ints("end", 2)}), size},
			onnx.Int("axis", 0))
		y := b.Node("Resize", "resize", []string{x, "", "", all}, onnx.String("mode", "nearest"))
		y = b.Node("Resize", "scaled", []string{y, "", b.Floats("scales", []float32{1, 1, 0.5, 0.5}, 4)}, onnx.String("mode", "nearest"))
		b.Output(y, -1, 2, -1, -1)
		return y
	})
	input := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	want := run(t, m, input, 1, 1, 4, 4)
	half := m.Clone()
	report, err := quantize.ConvertFP16(half, quantize.FP16Options{ConvertTail: true})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		"sides/Cast": "computes sizes", "twice/Mul": "computes sizes", "twice/Floor": "computes sizes", "size/Cast": "computes sizes",
	}, report.KeptFP32)
	got := run(t, half, input, 1, 1, 4, 4)
	for name, values := range want {
		assert.Less(t, apart(t, values, got[name]), 0.05, name)
	}
}

// INT8 with float16 in between: the file that a strongly typed TensorRT needs.
func TestFP16OfQuantizedModel(t *testing.T) {
	m := yolo(testnet.YOLO{}).V8()
	_, p := plan(t, m, quantize.Options{Method: quantize.MinMax})
	int8, err := p.Apply(uniform(p, 6))
	require.NoError(t, err)
	want := run(t, int8, img(), 1, 3, side, side)["output0"]
	for _, opset := range []int{17, 19} {
		mixed := int8.Clone()
		require.NoError(t, mixed.RaiseOpset(opset))
		report, err := quantize.ConvertFP16(mixed, quantize.FP16Options{})
		require.NoError(t, err)
		casts := mixed.Operators()["Cast"]
		if opset == 19 {
			assert.LessOrEqual(t, casts, 8, "scales are float16 too, so only input and decoding need casts")
			for _, tensor := range report.Tensors {
				assert.Zero(t, tensor.Overflows, tensor.Name)
			}
		} else {
			assert.Greater(t, casts, 60)
		}
		got := run(t, mixed, img(), 1, 3, side, side)["output0"]
		sum, size := 0.0, 0.0
		for i := range want {
			sum += math.Pow(float64(want[i]-got[i]), 2)
			size += math.Pow(float64(want[i]), 2)
		}
		assert.Less(t, sum/size, 0.01, "opset %d", opset)
	}
}

// nodeBefore returns the name of the node that produces a tensor.
func nodeBefore(m *onnx.Model, tensor string) string {
	return onnx.NewIndex(m.Proto.Graph).Producer[tensor].GetName()
}
