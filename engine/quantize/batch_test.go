package quantize_test

import (
	"context"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oneBuffer returns every image in the same memory, like an image reader.
type oneBuffer struct {
	patches
	data *[]byte
}

func (o oneBuffer) Load(i int) (quantize.Sample, error) {
	s, err := o.patches.Load(i)
	*o.data = append((*o.data)[:0], s.Image.Data...)
	s.Image.Data = *o.data
	return s, err
}

// The ranges do not depend on the batch size, even with an incomplete last batch.
func TestCollectorInBatches(t *testing.T) {
	run := func(model testnet.YOLO, size int) (*quantize.Cache, error) {
		prepared, p := plan(t, model.V11(), quantize.Options{QuantizeNarrow: true})
		total := 0
		c := quantize.Collector{
			Model: prepared, Tensors: p.Tensors, Samples: oneBuffer{patches{count: 7}, new([]byte)}, Batch: size,
			Progress: func(int, int) { total++ },
			Open: func(model []byte) (quantize.Runner, error) {
				return opened(engine.Options{Path: "test.onnx", Bytes: model, Provider: engine.CPU, Slots: 1, MaxBatch: size})
			},
		}
		cache, err := c.Run(context.Background())
		if err == nil {
			assert.Equal(t, 7, total)
		}
		return cache, err
	}
	want, err := run(testnet.YOLO{Size: 64, Wide: 4, Dynamic: true}, 0)
	require.NoError(t, err)
	for _, size := range []int{1, 3, 16} {
		got, err := run(testnet.YOLO{Size: 64, Wide: 4, Dynamic: true}, size)
		require.NoError(t, err)
		for name, r := range want.Ranges {
			for method, limit := range r.Limits {
				assert.InEpsilon(t, limit, got.Ranges[name].Limits[method], 1e-3, "%s of %s in batches of %d", method, name, size)
			}
		}
	}
	_, err = run(testnet.YOLO{Size: 64, Wide: 4}, 2)
	assert.EqualError(t, err,
		"quantize calibrate: batches of 2 exceed the maximum batch of the model, 1 (omit the calibration batch)")
}
