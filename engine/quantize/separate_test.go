package quantize_test

import (
	"math/rand/v2"
	"testing"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A model with separated activations computes the same values under the same names, with fixed and dynamic sizes, and only these layers
// change.
func TestSeparateActivations(t *testing.T) {
	for name, y := range map[string]testnet.YOLO{"fixed": {}, "open batch": {Dynamic: true}, "with norms": {Norms: true}} {
		t.Run(name, func(t *testing.T) {
			m := yolo(y).V8()
			before, err := m.Bytes()
			require.NoError(t, err)
			p, err := quantize.NewPlan(m, quantize.Options{Exclude: []string{"/model.1/conv/Conv", "/model.2/cv*/conv/Conv"}})
			require.NoError(t, err)
			made, separated := quantize.SeparateActivations(m, p.Unquantized())
			assert.Equal(t, 3, separated, "the heads' last layers have no activation")
			after, err := m.Bytes()
			require.NoError(t, err)
			assert.Equal(t, before, after, "the model itself stays as it was")
			was, is := m.Operators(), made.Operators()
			assert.Equal(t, was["Reshape"]+2*separated, is["Reshape"])
			assert.Equal(t, was["Sigmoid"], is["Sigmoid"])

			random := rand.New(rand.NewPCG(1, 2))
			input := make([]float32, 3*64*64)
			for i := range input {
				input[i] = random.Float32()
			}
			assert.Equal(t, run(t, m, input, 1, 3, 64, 64), run(t, made, input, 1, 3, 64, 64))
		})
	}
}

// openSides returns a convolution with SiLU for images of any size, and the name of the convolution's output.
func openSides() (m *onnx.Model, layer string) {
	b := testnet.NewBuilder(1)
	layer = b.Conv("/conv", b.Input("x", 1, 2, -1, -1), testnet.Convolution{In: 2, Out: 2, Kernel: 3})
	b.Rename(b.SiLU("/act", layer), "z")
	b.Output("z", 1, 2, -1, -1)
	return b.Model(17), layer
}

// With dynamic sides the shape is read from the layer's output.
func TestSeparateActivationsWithDynamicSize(t *testing.T) {
	m, layer := openSides()
	made, separated := quantize.SeparateActivations(m, []string{layer})
	assert.Equal(t, 1, separated)
	input := make([]float32, 2*5*7)
	for i := range input {
		input[i] = float32(i%11) - 5
	}
	assert.Equal(t, run(t, m, input, 1, 2, 5, 7), run(t, made, input, 1, 2, 5, 7))
}

// Without a SiLU the model itself is returned: after a ReLU, or if something else reads the output or it is an output of the network.
func TestSeparateActivationsUnchanged(t *testing.T) {
	m, layer := openSides()
	for _, name := range []string{"x", "none", "z"} {
		t.Run(name, func(t *testing.T) {
			made, separated := quantize.SeparateActivations(m, []string{name})
			assert.Zero(t, separated)
			assert.Same(t, m, made)
		})
	}
	g := m.Proto.Graph
	g.Output = append(g.Output, onnx.NewValueInfo(layer, onnx.TensorProto_FLOAT, []int64{-1, 2, -1, -1}))
	_, separated := quantize.SeparateActivations(m, []string{layer})
	assert.Zero(t, separated)
}
