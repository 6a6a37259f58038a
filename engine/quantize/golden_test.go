package quantize_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// open opens a model on ONNX Runtime.
func open(model []byte) (quantize.Runner, error) {
	return opened(engine.Options{Path: "test.onnx", Bytes: model, Slots: 1})
}

func opened(o engine.Options) (quantize.Runner, error) {
	e, err := onnxruntime.Open(o)
	if err != nil {
		return nil, err
	}
	return predict.WrapRaw(e), nil
}

// run runs one float32 tensor and copies the outputs.
func run(t *testing.T, m *onnx.Model, input []float32, shape ...int64) map[string][]float32 {
	t.Helper()
	data, err := m.Bytes()
	require.NoError(t, err)
	e, err := open(data)
	require.NoError(t, err)
	defer e.Close()
	in := onnx.NewFloats(e.Model().Inputs[0].Name, input, shape...)
	result, err := e.Tensors(engine.Tensor{Name: in.GetName(), Type: engine.Float32, Shape: shape, Data: in.RawData})
	require.NoError(t, err)
	outputs := make(map[string][]float32)
	for i := range result.Outputs {
		outputs[result.Outputs[i].Name] = append([]float32{}, result.Outputs[i].Float32s()...)
	}
	return outputs
}

// With the same ranges the model equals that of onnxruntime.quantization with TensorRT's options: the same quantized tensors, scales and
// integers, and the same outputs on ONNX Runtime.
func TestEqualsONNXRuntimeQuantization(t *testing.T) {
	text, err := os.ReadFile("testdata/shared_ranges.json")
	require.NoError(t, err)
	var limits map[string]float32
	require.NoError(t, json.Unmarshal(text, &limits))
	ranges := make(quantize.Ranges)
	for name, limit := range limits {
		ranges[name] = quantize.Range{Limits: map[quantize.Method]float32{quantize.MinMax: limit}}
	}
	single, err := onnx.Read("testdata/shared.onnx")
	require.NoError(t, err)
	golden, err := onnx.Read("testdata/shared_int8.onnx")
	require.NoError(t, err)
	x := onnx.NewIndex(golden.Proto.Graph)
	data, err := os.ReadFile("testdata/shared_input.bin")
	require.NoError(t, err)
	tensor := onnx.NewFloats("images", nil, 768)
	tensor.RawData = data
	input, err := tensor.Floats()
	require.NoError(t, err)
	want := run(t, golden, input, 1, 3, 16, 16)["output"]
	full := run(t, single, input, 1, 3, 16, 16)["output"]

	for _, stored := range []bool{true, false} {
		prepared, p := plan(t, single, quantize.Options{
			Method: quantize.MinMax, QuantizeHead: true, QuantizeNarrow: true, SeparateScales: true, StoreInt8: stored,
		})
		assert.Len(t, prepared.Proto.Graph.Node, len(single.Proto.Graph.Node))
		m, err := p.Apply(ranges)
		require.NoError(t, err)
		ours := onnx.NewIndex(m.Proto.Graph)
		compared := 0
		for name, theirs := range x.Initializer {
			t.Run(name, func(t *testing.T) {
				switch {
				case strings.HasSuffix(name, "_scale"):
					a, err := theirs.Floats()
					require.NoError(t, err)
					require.Contains(t, ours.Initializer, name)
					b, err := ours.Initializer[name].Floats()
					require.NoError(t, err)
					require.Len(t, b, len(a))
					for i := range a {
						assert.InEpsilon(t, a[i], b[i], 1e-6)
					}
					compared++
				case strings.HasSuffix(name, "_quantized") && stored:
					require.Contains(t, ours.Initializer, name)
					require.Len(t, ours.Initializer[name].RawData, len(theirs.RawData))
					for i, b := range theirs.RawData {
						assert.InDelta(t, int8(b), int8(ours.Initializer[name].RawData[i]), 1, "element %d", i)
					}
					compared++
				}
			})
		}
		assert.Equal(t, map[bool]int{true: 15, false: 10}[stored], compared)
		got := run(t, m, input, 1, 3, 16, 16)["output"]
		lost, apart := 0.0, 0.0
		for i := range want {
			apart = max(apart, math.Abs(float64(got[i]-want[i])))
			lost = max(lost, math.Abs(float64(full[i]-want[i])))
		}
		assert.Less(t, apart, lost/10, "our outputs are theirs, not just near FP32")
		assert.Less(t, apart, 1e-4)
		assert.Positive(t, lost)
		t.Logf("largest difference to onnxruntime's model %.2g, of it to FP32 %.2g", apart, lost)
	}
}
