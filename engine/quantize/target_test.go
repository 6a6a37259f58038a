package quantize_test

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
)

// forCPU returns the plan of the demo model for ONNX Runtime and its model, with ranges measured on random images.
func forCPU(t *testing.T, options quantize.Options) (*quantize.Plan, *onnx.Model, *onnx.Model) {
	t.Helper()
	single, err := onnx.Parse("demo", demo.Model())
	require.NoError(t, err)
	options.Target, options.Method = quantize.ONNXRuntime, quantize.MinMax
	prepared, p := plan(t, single, options)
	ranges := make(quantize.Ranges)
	for _, name := range p.Tensors {
		ranges[name] = quantize.Range{Min: -0.3, Max: 6, Limits: map[quantize.Method]float32{quantize.MinMax: 6}}
	}
	m, err := p.Apply(ranges)
	require.NoError(t, err)
	return p, prepared, m
}

// Every quantized layer is between integers, as ONNX Runtime's kernels need it: its input, weights and bias are dequantized, and only a
// QuantizeLinear reads its output. So is what follows it, up to the layers in floating point.
func TestONNXRuntimeGetsIntegersOnBothSides(t *testing.T) {
	p, _, m := forCPU(t, quantize.Options{})
	x := onnx.NewIndex(m.Proto.Graph)
	byOutput := make(map[string]*onnx.NodeProto)
	for _, n := range m.Proto.Graph.Node {
		byOutput[n.Out(0)] = n
	}
	dequantized := func(name string) bool {
		return x.Producer[name] != nil && x.Producer[name].GetOpType() == "DequantizeLinear"
	}
	quantizedOnly := func(name string) bool {
		return len(x.Readers[name]) == 1 && x.Readers[name][0].GetOpType() == "QuantizeLinear"
	}
	layers := 0
	for i := range p.Layers {
		if !p.Layers[i].Quantized() {
			continue
		}
		layers++
		for _, n := range m.Proto.Graph.Node {
			if n.GetName() == p.Layers[i].Name {
				for _, input := range n.Input {
					assert.True(t, dequantized(input), "%s reads %s", n.GetName(), input)
				}
				output := n.Out(0)
				if reader := x.SoleReader(output); reader != nil && reader.GetOpType() == "Relu" { // is replaced by the range
					output = reader.Out(0)
				}
				assert.True(t, quantizedOnly(output), n.GetName())
			}
		}
	}
	assert.Greater(t, layers, 20)
	between := 0
	for _, n := range m.Proto.Graph.Node {
		switch n.GetOpType() {
		case "Sigmoid", "Mul", "Add", "Concat", "MaxPool", "Resize":
			if dequantized(n.In(0)) && quantizedOnly(n.Out(0)) {
				between++
			}
		}
	}
	assert.Greater(t, between, 5, "concatenations are integers as well")
	for _, output := range m.Proto.Graph.Output {
		assert.False(t, dequantized(output.GetName()), "the decoding computes in floating point")
	}
}

// Ranges become unsigned integers with a zero point, and those of an input and an output that have the same values are one.
func TestUnsignedActivations(t *testing.T) {
	_, _, m := forCPU(t, quantize.Options{})
	zeros, scales := 0, map[float32]int{}
	for _, c := range m.Proto.Graph.Initializer {
		if onnx.TensorProto_DataType(c.GetDataType()) == onnx.TensorProto_UINT8 {
			zeros++
			assert.Equal(t, []byte{12}, c.RawData, "0.3 of 6.3 in 255 steps")
		}
	}
	for _, n := range m.Proto.Graph.Node {
		if n.GetOpType() == "QuantizeLinear" {
			values, err := onnx.NewIndex(m.Proto.Graph).Constant(n.In(1)).Floats()
			require.NoError(t, err)
			scales[values[0]]++
		}
	}
	assert.Positive(t, zeros)
	assert.Len(t, scales, 1)
	for scale := range scales {
		assert.InDelta(t, 6.3/255, scale, 1e-7)
	}
}

// The model computes nearly what the FP32 model does, also with 7 bits of weights and with a head of integers, and its weights are a
// quarter of the size.
func TestONNXRuntimeComputesNearlyTheSame(t *testing.T) {
	single, err := onnx.Read("testdata/shared.onnx")
	require.NoError(t, err)
	data, err := os.ReadFile("testdata/shared_input.bin")
	require.NoError(t, err)
	tensor := onnx.NewFloats("images", nil, 768)
	tensor.RawData = data
	input, err := tensor.Floats()
	require.NoError(t, err)
	want := run(t, single, input, 1, 3, 16, 16)["output"]
	size := 0.0
	for _, v := range want {
		size += float64(v * v)
	}
	for _, reduced := range []bool{false, true} {
		options := quantize.Options{Target: quantize.ONNXRuntime, Method: quantize.MinMax, QuantizeHead: true, ReduceRange: reduced}
		prepared, p := plan(t, single, options)
		exposed, _ := quantize.Expose(prepared, p.Tensors)
		ranges := make(quantize.Ranges)
		for name, values := range run(t, exposed, input, 1, 3, 16, 16) {
			r := quantize.Range{}
			for _, v := range values {
				r.Min, r.Max = min(r.Min, v), max(r.Max, v)
			}
			r.Limits = map[quantize.Method]float32{quantize.MinMax: max(-r.Min, r.Max)}
			ranges[name] = r
		}
		for _, name := range p.Tensors {
			if _, measured := ranges[name]; !measured { // the input
				ranges[name] = quantize.Range{Min: -4, Max: 4, Limits: map[quantize.Method]float32{quantize.MinMax: 4}}
			}
		}
		m, err := p.Apply(ranges)
		require.NoError(t, err)
		lost := 0.0
		for i, v := range run(t, m, input, 1, 3, 16, 16)["output"] {
			d := float64(v - want[i])
			lost += d * d
		}
		assert.Less(t, math.Sqrt(lost/size), .05, "relative error")
	}
	_, prepared, m := forCPU(t, quantize.Options{})
	before, err := prepared.Bytes()
	require.NoError(t, err)
	after, err := m.Bytes()
	require.NoError(t, err)
	assert.Less(t, len(after), len(before)/2)
}

// What has no integer kernel stays in floating point, with the reason.
func TestONNXRuntimeRefuses(t *testing.T) {
	p, _, _ := forCPU(t, quantize.Options{Exclude: []string{"Conv"}, QuantizeHead: true})
	assert.Zero(t, p.Count())
	assert.Empty(t, p.Tensors)
}
