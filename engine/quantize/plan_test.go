package quantize_test

import (
	"slices"
	"testing"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func yolo(y testnet.YOLO) testnet.YOLO {
	if y.Size == 0 {
		y.Size = 64
	}
	return y
}

func plan(t *testing.T, m *onnx.Model, options quantize.Options) (*onnx.Model, *quantize.Plan) {
	t.Helper()
	prepared, err := quantize.Prepare(m)
	require.NoError(t, err)
	p, err := quantize.NewPlan(prepared, options)
	require.NoError(t, err)
	return prepared, p
}

// uniform gives every tensor of the plan the same range.
func uniform(p *quantize.Plan, limit float32) quantize.Ranges {
	ranges := make(quantize.Ranges)
	for _, name := range p.Tensors {
		ranges[name] = quantize.Range{
			Min: -limit, Max: limit,
			Limits: map[quantize.Method]float32{quantize.DefaultMethod: limit, quantize.MinMax: limit},
		}
	}
	return ranges
}

func reasons(p *quantize.Plan) map[string]int {
	counts := make(map[string]int)
	for i := range p.Layers {
		counts[p.Layers[i].Reason]++
	}
	return counts
}

func TestPlanOfPublishedNetworks(t *testing.T) {
	_, p := plan(t, yolo(testnet.YOLO{}).V8(), quantize.Options{})
	assert.Equal(t, map[string]int{"": 57, "produces the head's output": 6, "averages a distribution (DFL)": 1}, reasons(p))
	assert.Equal(t, 57, p.Count())
	assert.Len(t, p.Unquantized(), 6, "the head's outputs; a calibrator learns of the DFL convolution by what follows them")

	_, p = plan(t, yolo(testnet.YOLO{}).V10(), quantize.Options{})
	const grouped = "in groups before an Add, for which TensorRT has no INT8 kernel"
	assert.Equal(t, map[string]int{"": 77, "produces the head's output": 6, "averages a distribution (DFL)": 1, grouped: 1}, reasons(p))
	assert.Len(t, p.Unquantized(), 6)

	_, p = plan(t, yolo(testnet.YOLO{}).V11(), quantize.Options{})
	assert.Equal(t, map[string]int{"": 82, "produces the head's output": 6, "averages a distribution (DFL)": 1, grouped: 1}, reasons(p))

	_, p = plan(t, yolo(testnet.YOLO{Wide: 8}).V11(),
		quantize.Options{Exclude: []string{"/model.10/*/*/attn/*", "MatMul", "/model.0/conv/Conv"}})
	assert.Equal(t, 2, reasons(p)["excluded"]-1, "two products and the first convolution")
	assert.Equal(t, 1, reasons(p)["narrow: 4 to 8 channels"], "%v", reasons(p))
	_, wide := plan(t, yolo(testnet.YOLO{Wide: 8}).V11(), quantize.Options{QuantizeNarrow: true, QuantizeHead: true})
	assert.Equal(t, 88, wide.Count(), "all but the DFL convolution and that of the attention's positions")

	_, p = plan(t, yolo(testnet.YOLO{}).V8(), quantize.Options{Only: []string{"/model.2/m.0/cv1/conv/Conv"}})
	assert.Equal(t, 1, p.Count())
	assert.Equal(t, []string{"/model.2/Split_output_1"}, p.Tensors)
	assert.Len(t, p.Unquantized(), 6)
	_, p = plan(t, yolo(testnet.YOLO{}).V8(), quantize.Options{Exclude: []string{"/model.0/conv/Conv"}, QuantizeHead: true})
	assert.Equal(t, []string{"/model.0/conv/Conv_output_0"}, p.Unquantized())
}

func TestPlanRefuses(t *testing.T) {
	m := yolo(testnet.YOLO{}).V8()
	prepared, err := quantize.Prepare(m)
	require.NoError(t, err)
	_, err = quantize.NewPlan(prepared, quantize.Options{Exclude: []string{"/model.99/*"}})
	assert.EqualError(t, err, `quantize int8: "/model.99/*" names no node of the model (give a node's name, a pattern such as /model.22/*/conv/Conv, or an operator such as MatMul)`)
	_, err = quantize.NewPlan(prepared, quantize.Options{Only: []string{"[a"}})
	assert.EqualError(t, err, `quantize int8: pattern "[a" is malformed (use * and ? as wildcards within one element of a node's name)`)

	p, err := quantize.NewPlan(prepared, quantize.Options{})
	require.NoError(t, err)
	_, err = p.Apply(quantize.Ranges{})
	assert.EqualError(t, err,
		`quantize int8: no mse range was measured for 52 tensors, such as "/model.0/act/Mul_output_0" (calibrate this very model again)`)
	quantized, err := p.Apply(uniform(p, 4))
	require.NoError(t, err)
	_, err = quantize.Prepare(quantized)
	assert.EqualError(t, err, "quantize int8: the model is quantized already: it has QuantizeLinear nodes (start from the FP32 model)")

	m.Proto.OpsetImport[0].Version = proto.Int64(30)
	_, err = quantize.Prepare(m)
	assert.EqualError(t, err, `onnx model: "testnet": uses opset 30, quantization reads up to 24 (export the model again with opset=17)`)
}

// TensorRT's rules hold for every node of the result.
func TestPlacement(t *testing.T) {
	for name, m := range map[string]*onnx.Model{
		"v8": yolo(testnet.YOLO{Norms: true}).V8(), "v11": yolo(testnet.YOLO{Dynamic: true}).V11(), "stored": yolo(testnet.YOLO{}).V11(),
	} {
		_, p := plan(t, m, quantize.Options{StoreInt8: name == "stored"})
		quantized, err := p.Apply(uniform(p, 4))
		require.NoError(t, err, name)
		x := onnx.NewIndex(quantized.Proto.Graph)
		layers := make(map[string]bool)
		for i := range p.Layers {
			layers[p.Layers[i].Name] = p.Layers[i].Quantized()
		}
		adds := 0
		for _, n := range quantized.Proto.Graph.Node {
			dequantized := 0
			for i, input := range n.Input {
				from := x.Producer[input]
				if from == nil || from.GetOpType() != "DequantizeLinear" {
					continue
				}
				dequantized++
				assert.Less(t, i, 2, "%s: the bias stays FP32", n.GetName())
			}
			switch {
			case layers[n.GetName()]:
				assert.Equal(t, 2, dequantized, "%s reads two quantized tensors", n.GetName())
			case n.GetOpType() == "Add" && dequantized > 0:
				assert.Equal(t, 1, dequantized, "%s: only the identity branch is quantized", n.GetName())
				adds++
			default:
				assert.Zero(t, dequantized, "%s %s reads floats", n.GetName(), n.GetOpType())
			}
			if n.GetOpType() != "QuantizeLinear" && n.GetOpType() != "DequantizeLinear" {
				continue
			}
			scale, err := x.Initializer[n.In(1)].Floats()
			require.NoError(t, err)
			zero := x.Initializer[n.In(2)]
			assert.EqualValues(t, onnx.TensorProto_INT8, zero.GetDataType())
			assert.Equal(t, make([]byte, len(scale)), zero.RawData, "zero points are 0")
			for _, s := range scale {
				assert.Positive(t, s)
			}
			assert.Equal(t, n.FindAttribute("axis") != nil, len(x.Initializer[n.In(1)].Dims) == 1, "one scale per channel goes with an axis")
		}
		want := map[string]int{"v8": 6, "v11": 13, "stored": 13}[name]
		assert.Equal(t, want, adds, "%s: residual branches", name)
	}
}

// The position encoding of YOLO11's attention is a depthwise convolution that TensorRT fuses with the following Add: both stay in floating
// point, whatever the Add's other input is.
func TestDepthwiseConvolutionBeforeAdd(t *testing.T) {
	const positions, add = "/model.10/m/m.0/attn/pe/conv/Conv", "/model.10/m/m.0/attn/Add"
	float := func(m *onnx.Model, name, add string) {
		prepared, p := plan(t, m, quantize.Options{})
		at := slices.IndexFunc(p.Layers, func(l quantize.Layer) bool { return l.Name == name })
		require.GreaterOrEqual(t, at, 0)
		assert.Equal(t, "in groups before an Add, for which TensorRT has no INT8 kernel", p.Layers[at].Reason)
		quantized, err := p.Apply(uniform(p, 4))
		require.NoError(t, err)
		before, after := onnx.NewIndex(prepared.Proto.Graph), onnx.NewIndex(quantized.Proto.Graph)
		for i, n := range quantized.Proto.Graph.Node {
			if n.GetName() == name || n.GetName() == add {
				for _, input := range n.Input {
					if from := after.Producer[input]; from != nil {
						assert.NotEqual(t, "DequantizeLinear", from.GetOpType(), "node %d, %s reads %s", i, n.GetName(), input)
					}
				}
				assert.Equal(t, before.Producer[n.Out(0)].Input, n.Input)
			}
		}
	}
	float(yolo(testnet.YOLO{}).V11(), positions, add)
	float(yolo(testnet.YOLO{Norms: true}).V10(), positions, add)

	// TensorRT would fuse a convolution on the other side with the Add and quantize the output of the depthwise one.
	both := func(group int64) *onnx.Model {
		b := testnet.NewBuilder(1)
		x := b.Conv("/first", b.Input("images", 1, 3, 32, 32), testnet.Convolution{In: 3, Out: 16, Kernel: 3})
		y := b.Conv("/grouped", x, testnet.Convolution{In: 16, Out: 16, Kernel: 3, Group: group})
		x = b.Node("Add", "/join", []string{y, b.Conv("/other", x, testnet.Convolution{In: 16, Out: 16, Kernel: 3})})
		x = b.Conv("/last", x, testnet.Convolution{In: 16, Out: 16, Kernel: 3})
		b.Output(b.Rename(b.Conv("/head", x, testnet.Convolution{In: 16, Out: 16, Kernel: 1}), "output0"), 1, 16, 32, 32)
		return b.Model(13)
	}
	float(both(16), "/grouped/Conv", "/join/Add")
	_, p := plan(t, both(1), quantize.Options{})
	assert.Contains(t, p.Tensors, "/grouped/Conv_output_0", "without groups the branch is quantized as ever")
}

// The inputs and the output of every Concat before the head have the same scale.
func TestSharedScales(t *testing.T) {
	_, p := plan(t, yolo(testnet.YOLO{}).V8(), quantize.Options{})
	ranges := make(quantize.Ranges)
	for i, name := range p.Tensors {
		ranges[name] = quantize.Range{Limits: map[quantize.Method]float32{quantize.DefaultMethod: 1 + float32(i)}}
	}
	quantized, err := p.Apply(ranges)
	require.NoError(t, err)
	x := onnx.NewIndex(quantized.Proto.Graph)
	scale := func(name string) float32 {
		for _, reader := range x.Readers[name] {
			if reader.GetOpType() == "QuantizeLinear" {
				values, err := x.Initializer[reader.In(1)].Floats()
				require.NoError(t, err)
				return values[0]
			}
		}
		return 0
	}
	concats := 0
	for _, n := range quantized.Proto.Graph.Node {
		result := scale(n.Out(0))
		if n.GetOpType() != "Concat" || result == 0 {
			continue
		}
		concats++
		for _, name := range n.Input {
			if s := scale(name); s != 0 {
				assert.Equal(t, result, s, "%s of %s", name, n.GetName())
			}
		}
	}
	assert.Equal(t, 13, concats)
}

// Files of the first ONNX versions list their weights as inputs too; a replaced weight must not remain as an input.
func TestWeightsListedAsInputs(t *testing.T) {
	old := func() *onnx.Model {
		m := yolo(testnet.YOLO{Wide: 4, Norms: true}).V8()
		for _, w := range m.Proto.Graph.Initializer {
			m.Proto.Graph.Input = append(m.Proto.Graph.Input, onnx.NewValueInfo(w.GetName(), onnx.TensorProto_DataType(w.GetDataType()), w.Dims))
		}
		return m
	}
	_, p := plan(t, old(), quantize.Options{QuantizeNarrow: true, StoreInt8: true})
	int8, err := p.Apply(uniform(p, 4))
	require.NoError(t, err)
	half := old()
	_, err = quantize.ConvertFP16(half, quantize.FP16Options{})
	require.NoError(t, err)
	for _, m := range []*onnx.Model{int8, half} {
		inputs, err := m.Inputs()
		require.NoError(t, err)
		require.Len(t, inputs, 1)
		assert.Equal(t, "images", inputs[0].Name)
	}
}
