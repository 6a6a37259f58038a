package onnx_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// run runs a model with random numbers as its first input and copies its outputs.
func run(t *testing.T, m *onnx.Model, shape ...int64) map[string]engine.Tensor {
	t.Helper()
	data, err := m.Bytes()
	require.NoError(t, err)
	e, err := onnxruntime.Open(engine.Options{Path: "test.onnx", Bytes: data, Slots: 1})
	require.NoError(t, err)
	defer e.Close()
	random := rand.New(rand.NewPCG(3, 3))
	values := make([]float32, engine.Elements(shape))
	for i := range values {
		values[i] = random.Float32()
	}
	in := onnx.NewFloats("", values, shape...)
	require.NoError(t, e.SubmitTensors(0, []engine.Tensor{
		{Name: e.Model().Inputs[0].Name, Type: engine.Float32, Shape: shape, Data: in.RawData},
	}))
	result, err := e.Wait(0)
	require.NoError(t, err)
	outputs := make(map[string]engine.Tensor)
	for _, out := range result.Outputs {
		out.Data = append([]byte{}, out.Data...)
		out.Shape = append([]int64{}, out.Shape...)
		outputs[out.Name] = out
	}
	return outputs
}

func close(t *testing.T, a, b engine.Tensor) {
	t.Helper()
	require.Equal(t, a.Shape, b.Shape)
	x, y := a.Float32s(), b.Float32s()
	worst := 0.0
	for i := range x {
		worst = max(worst, math.Abs(float64(x[i]-y[i]))/max(1, math.Abs(float64(x[i]))))
	}
	assert.Less(t, worst, 1e-3)
}

// expose makes every tensor of the graph an output, except those that the Go binding of ONNX Runtime cannot return: scalars and booleans.
func expose(m *onnx.Model) *onnx.Model {
	m = m.Clone()
	values := m.Infer()
	x := onnx.NewIndex(m.Proto.Graph)
	for _, n := range m.Proto.Graph.Node {
		for _, name := range n.Output {
			if name != "" && !x.Outputs[name] && len(values[name].Shape) > 0 && values[name].Type != onnx.TensorProto_BOOL {
				m.Proto.Graph.Output = append(m.Proto.Graph.Output, onnx.NewValueInfo(name, values[name].Type, nil))
			}
		}
	}
	return m
}

// Infer's types and shapes equal those of ONNX Runtime.
func TestInferAgainstONNXRuntime(t *testing.T) {
	const side = 64
	for name, m := range map[string]*onnx.Model{
		"v8": testnet.YOLO{Size: side, Wide: 4, Norms: true}.V8(), "v11": testnet.YOLO{Size: side, Wide: 4}.V11(),
		"dynamic": testnet.YOLO{Size: side, Wide: 4, Dynamic: true}.V11(), "operators": operators(),
	} {
		shape := []int64{1, 3, side, side}
		given := run(t, expose(m), shape...)
		values := m.Infer()
		for tensor, got := range given {
			value := values[tensor]
			require.Len(t, value.Shape, len(got.Shape), "%s: %s is %v, inferred %s", name, tensor, got.Shape, value)
			for i, d := range value.Shape {
				if name == "v8" || name == "v11" {
					assert.Equal(t, got.Shape[i], d, "%s: %s is %v, inferred %s", name, tensor, got.Shape, value)
				} else {
					assert.Contains(t, []int64{got.Shape[i], onnx.UnknownDim}, d, "%s: %s is %v, inferred %s", name, tensor, got.Shape, value)
				}
			}
			assert.Equal(t, got.Type.String(), map[onnx.TensorProto_DataType]string{
				onnx.TensorProto_FLOAT: "float32", onnx.TensorProto_INT64: "int64", onnx.TensorProto_INT32: "int32", onnx.TensorProto_INT8: "int8",
			}[value.Type], "%s: %s", name, tensor)
		}
	}
}

// operators is a chain of operators of detectors other than convolutions, with sizes computed from the input's shape.
func operators() *onnx.Model {
	b := testnet.NewBuilder(9)
	x := b.Input("images", 1, 3, -1, -1)
	in := func(names ...string) []string { return names }
	x = b.Conv("/conv", x, testnet.Convolution{In: 3, Out: 8, Kernel: 3, Stride: 2})
	shape := b.Node("Shape", "/shape", in(x))
	height := b.Node("Gather", "/height", in(shape, b.Ints("two", 2)))
	double := b.Node("Mul", "/double", in(height, b.Ints("times", 2)))
	sizes := b.Node("Concat", "/sizes", in(b.Node("Slice", "/slice", in(shape, b.Ints("from", 0), b.Ints("to", 2))), double, double),
		onnx.Int("axis", 0))
	y := b.Node("Resize", "/resize", in(x, "", "", sizes), onnx.String("mode", "linear"))
	y = b.Node("AveragePool", "/average", in(y), onnx.Ints("kernel_shape", 3, 3), onnx.Ints("strides", 2, 2), onnx.Int("ceil_mode", 1))
	y = b.Node("ConvTranspose", "/deconv", in(y, b.Random("deconv.weight", 0, 0.1, 8, 4, 2, 2)), onnx.Ints("strides", 2, 2),
		onnx.Int("group", 2))
	y = b.Node("Pad", "/pad", in(y, b.Ints("pads", 0, 0, 1, 0, 0, 0, 1, 0)))
	y = b.Node("DepthToSpace", "/depth", in(b.Node("SpaceToDepth", "/space", in(y), onnx.Int("blocksize", 2))), onnx.Int("blocksize", 2))
	top := b.Nodes("TopK", "/topk", in(b.Node("Flatten", "/flatten", in(y)), b.Ints("k", 5)), 2)
	b.Node("ReduceMean", "/mean", in(y), onnx.Ints("axes", 2, 3), onnx.Int("keepdims", 0))
	b.Node("ReduceMax", "/max", in(y), onnx.Ints("axes", -1))
	b.Node("ReduceSum", "/sum", in(y, b.Ints("axes", 1)), onnx.Int("keepdims", 0))
	b.Node("ArgMax", "/argmax", in(y), onnx.Int("axis", 1), onnx.Int("keepdims", 0))
	b.Node("GatherElements", "/pick", in(b.Node("Flatten", "/flatten2", in(y)), top[1]), onnx.Int("axis", 1))
	b.Node("Greater", "/greater", in(y, b.Floats("zero", []float32{0})))
	b.Node("Where", "/where", in(b.Node("Greater", "/greater2", in(y, b.Floats("one", []float32{1}))), y, b.Floats("none", []float32{0})))
	grown := b.Node("Unsqueeze", "/unsqueeze", in(y, b.Ints("axes", 0, -1)))
	b.Node("Squeeze", "/squeeze", in(grown, b.Ints("axes", 0)))
	b.Node("Expand", "/expand", in(grown, b.Ints("shape", 2, 1, 1, 1, 1, 3)))
	b.Node("Tile", "/tile", in(y, b.Ints("repeats", 1, 2, 1, 3)))
	b.Node("Slice", "/strided", in(y, b.Ints("start", -1), b.Ints("end", -1000), b.Ints("axis", 2), b.Ints("step", -3)))
	b.Node("Range", "/range", in(b.Scalar("start", 0), b.Scalar("limit", 7), b.Scalar("delta", 2)))
	b.Node("ConstantOfShape", "/fill", in(sizes))
	b.Node("QuantizeLinear", "/q",
		in(y, b.Floats("scale", []float32{0.1}), b.Node("Cast", "/zero", in(b.Scalar("z", 0)), onnx.Int("to", int64(onnx.TensorProto_INT8)))))
	pooled := b.Node("GlobalAveragePool", "/pool", in(y))
	gemm := b.Node("Gemm", "/gemm", in(b.Node("Flatten", "/flat", in(pooled)), b.Random("gemm.weight", 0, 1, 10, 8)), onnx.Int("transB", 1))
	b.Output(b.Rename(gemm, "output"), 1, 10)
	return b.Model(17)
}

// Folding batch normalization does not change the outputs.
func TestFoldBatchNorm(t *testing.T) {
	const side = 64
	m := testnet.YOLO{Size: side, Wide: 4, Norms: true}.V11()
	norms := m.Operators()["BatchNormalization"]
	want := run(t, m, 1, 3, side, side)["output0"]
	folded, err := m.FoldBatchNorm()
	require.NoError(t, err)
	assert.Equal(t, norms, folded)
	assert.Zero(t, m.Operators()["BatchNormalization"])
	close(t, want, run(t, m, 1, 3, side, side)["output0"])

	b := testnet.NewBuilder(2)
	x := b.Input("images", 1, 3, 8, 8)
	shared := b.Random("shared", 0, 1, 4, 3, 1, 1)
	left := b.Norm("/left", b.Node("Conv", "/left", []string{x, shared}), 4)
	right := b.Node("Conv", "/right", []string{x, shared})
	up := b.Node("ConvTranspose", "/up", []string{left, b.Random("up", 0, 1, 4, 3, 2, 2), b.Random("upbias", 0, 1, 6)}, onnx.Int("group", 2))
	up = b.Norm("/up", up, 6)
	kept := b.Node("Conv", "/kept", []string{right, b.Random("w", 0, 1, 4, 4, 1, 1)})
	b.Output(b.Norm("/kept", kept, 4), 1, 4, -1, -1)
	b.Output(kept, 1, 4, -1, -1)
	b.Output(up, 1, 6, -1, -1)
	m = b.Model(17)
	before := run(t, m, 1, 3, 8, 8)
	folded, err = m.FoldBatchNorm()
	require.NoError(t, err)
	assert.Equal(t, 2, folded, "a result that is an output as well is not folded")
	after := run(t, m, 1, 3, 8, 8)
	for name, tensor := range before {
		close(t, tensor, after[name])
	}
}

// Raising a model of opset 11 or 12 does not change its outputs.
func TestRaiseOpset(t *testing.T) {
	old := func(opset int64) *onnx.Model {
		b := testnet.NewBuilder(4)
		x := b.Conv("/conv", b.Input("images", 1, 3, 8, 8), testnet.Convolution{In: 3, Out: 6, Kernel: 3})
		parts := b.Nodes("Split", "/split", []string{x}, 2, onnx.Int("axis", 1), onnx.Ints("split", 2, 4))
		halves := b.Nodes("Split", "/halves", []string{parts[1]}, 2, onnx.Int("axis", 1))
		y := b.Node("Squeeze", "/squeeze", []string{b.Node("ReduceSum", "/sum", []string{halves[0]}, onnx.Ints("axes", 1))}, onnx.Ints("axes", 1))
		y = b.Node("Unsqueeze", "/unsqueeze", []string{b.Node("ReduceMean", "/mean", []string{y}, onnx.Ints("axes", 2))}, onnx.Ints("axes", 0))
		y = b.Node("Softmax", "/softmax", []string{y}, onnx.Int("axis", 3))
		b.Output(b.Rename(y, "y"), 1, 1, 8, 1)
		return b.Model(opset)
	}
	for _, from := range []int64{11, 12, 13} {
		for _, to := range []int{13, 17, 19} {
			m := old(from)
			if from == 13 {
				m = old(11)
				require.NoError(t, m.RaiseOpset(13))
			}
			want := run(t, m, 1, 3, 8, 8)["y"]
			require.NoError(t, m.RaiseOpset(to))
			assert.Equal(t, to, m.Opset())
			close(t, want, run(t, m, 1, 3, 8, 8)["y"])
		}
	}
	m := old(12)
	m.Proto.Graph.Node[len(m.Proto.Graph.Node)-1].Attribute[0].I = proto.Int64(1)
	assert.EqualError(t, m.RaiseOpset(13),
		`onnx model: "testnet": node "/softmax/Softmax" (Softmax) over axis 1 changes its meaning in opset 13 (export the model again with opset=13)`)
	assert.EqualError(t, old(9).RaiseOpset(13),
		`onnx model: "testnet": uses opset 9 and cannot be raised to 13 (export the model again with opset=13)`)
}
