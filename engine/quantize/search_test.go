package quantize_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fragile returns a chain of convolutions of which those in bad read a tensor with one enormous channel that they ignore: with one scale
// for the tensor all other values round to 0.
func fragile(layers int, bad ...int) *onnx.Model {
	b := testnet.NewBuilder(11)
	x := b.Input("images", 1, 3, 32, 32)
	channels := int64(3)
	for i := range layers {
		name := "/layer" + string(rune('a'+i))
		x = b.Node("Relu", name, []string{b.Conv(name, x, testnet.Convolution{In: channels, Out: 16, Kernel: 3})})
		channels = 16
	}
	x = b.Conv("/head", x, testnet.Convolution{In: 16, Out: 8, Kernel: 1})
	b.Output(b.Rename(x, "output"), 1, 8, 32, 32)
	m := b.Model(17)
	for _, t := range m.Proto.Graph.Initializer {
		for _, i := range bad {
			values, err := t.Floats()
			if err != nil {
				panic(err)
			}
			switch t.GetName() {
			case "layer" + string(rune('a'+i-1)) + ".bias":
				values[0] = 10000
			case "layer" + string(rune('a'+i)) + ".weight":
				for k := range values {
					if k/9%16 == 0 {
						values[k] = 0
					}
				}
			}
			t.SetFloats(values)
		}
	}
	return m
}

func search(t *testing.T, m *onnx.Model, limit float64) (*quantize.Search, *int) {
	t.Helper()
	prepared, p := plan(t, m, quantize.Options{Method: quantize.MinMax})
	collector := quantize.Collector{Model: prepared, Tensors: p.Tensors, Open: open, Samples: patches{count: 6}}
	cache, err := collector.Run(context.Background())
	require.NoError(t, err)
	unseen := patches{count: 8}
	final := func(m *onnx.Model) []float32 {
		var all []float32
		data, err := m.Bytes()
		require.NoError(t, err)
		e, err := open(data)
		require.NoError(t, err)
		defer e.Close()
		for i := range unseen.count {
			s, err := unseen.Load(i)
			require.NoError(t, err)
			all = append(all, submit(t, e, s)...)
		}
		return all
	}
	reference := final(m)
	judged := new(int)
	return &quantize.Search{
		Model: prepared, Ranges: cache.Ranges, Options: quantize.Options{Method: quantize.MinMax}, Open: open, Samples: patches{count: 4},
		Judge: func(_ context.Context, m *onnx.Model) (*quantize.Verdict, error) {
			*judged++
			return &quantize.Verdict{Passed: noise(unseen.count, reference, final(m)) < limit}, nil
		},
	}, judged
}

// The search excludes exactly the layers that INT8 breaks.
func TestSearchFindsSensitiveLayers(t *testing.T) {
	s, judged := search(t, fragile(9, 2, 4, 7), 0.05)
	found, err := s.Run(context.Background())
	require.NoError(t, err)
	assert.True(t, found.Verdict.Passed)
	var excluded []string
	for _, l := range found.Layers {
		if l.Excluded {
			excluded = append(excluded, l.Name)
		}
	}
	assert.ElementsMatch(t, []string{"/layerc/Conv", "/layere/Conv", "/layerh/Conv"}, excluded)
	assert.Equal(t, 6, found.Plan.Count())
	assert.Len(t, found.Layers, 9)
	assert.Equal(t, *judged, found.Judged)
	assert.LessOrEqual(t, found.Judged, 6)
	for i := 1; i < len(found.Layers); i++ {
		assert.GreaterOrEqual(t, found.Layers[i-1].Error, found.Layers[i].Error)
	}
}

func TestSearchStopsWhenTheGatePasses(t *testing.T) {
	s, judged := search(t, fragile(3), 0.05)
	var steps []string
	s.Progress = func(step string) { steps = append(steps, step) }
	found, err := s.Run(context.Background())
	require.NoError(t, err)
	assert.True(t, found.Verdict.Passed)
	assert.Empty(t, found.Layers)
	assert.Equal(t, 1, *judged)
	assert.Equal(t, []string{"judge with 3 of 4 layers in INT8"}, steps)
}

func TestSearchGivesUp(t *testing.T) {
	s, _ := search(t, fragile(4, 2), 0)
	found, err := s.Run(context.Background())
	require.NoError(t, err)
	assert.False(t, found.Verdict.Passed)
	for _, l := range found.Layers {
		assert.False(t, l.Excluded)
	}
	s.Judge = func(context.Context, *onnx.Model) (*quantize.Verdict, error) { return nil, errors.New("device lost") }
	_, err = s.Run(context.Background())
	assert.EqualError(t, err, "device lost")
}

// Layers with a large error alone are excluded without a gate, also for calibrators.
func TestSensitiveLayersStayInFloatingPoint(t *testing.T) {
	s, _ := search(t, fragile(9, 2, 4, 7), 0.05)
	layers, err := s.SensitiveLayers(t.Context(), quantize.DefaultLayerLoss*50)
	require.NoError(t, err)
	options := s.Options
	for _, l := range layers {
		if l.Excluded {
			options.Sensitive = append(options.Sensitive, l.Name)
		}
	}
	assert.ElementsMatch(t, []string{"/layerc/Conv", "/layere/Conv", "/layerh/Conv"}, options.Sensitive)
	plan, err := quantize.NewPlan(s.Model, options)
	require.NoError(t, err)
	assert.Equal(t, 6, plan.Count())
	assert.Equal(t, []string{"/layerc/Conv_output_0", "/layere/Conv_output_0", "/layerh/Conv_output_0", "output"}, plan.Unquantized(),
		"the head's last layer too")
	for _, l := range plan.Layers {
		assert.Equal(t, slices.Contains(options.Sensitive, l.Name), l.Reason == "distorts the head's outputs", l)
	}
	none, err := s.SensitiveLayers(t.Context(), 2)
	require.NoError(t, err)
	for _, l := range none {
		assert.False(t, l.Excluded)
	}
}

func TestFewest(t *testing.T) {
	for layers := range 20 {
		for need := range 25 {
			tried := map[int]bool{}
			last := 0
			count, passed, err := quantize.FewestExclusions(layers, func(count int) (bool, error) {
				require.False(t, tried[count], "twice")
				require.Greater(t, count, 0)
				require.Less(t, count, layers, "never all")
				tried[count] = true
				if count >= need {
					last = count
				}
				return count >= need, nil
			})
			require.NoError(t, err)
			assert.Equal(t, layers > 1 && need < layers, passed, "%d of %d", need, layers)
			if passed {
				assert.Equal(t, max(need, 1), count)
				assert.Equal(t, last, count, "the last that passed")
			}
		}
	}
	_, _, err := quantize.FewestExclusions(4, func(int) (bool, error) { return false, errors.New("device lost") })
	assert.EqualError(t, err, "device lost")
}
