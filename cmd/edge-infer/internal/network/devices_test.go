package network

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Each GPU that is named has a predictor of its own, and not the first one all of them.
func TestEachGPUHasAPredictor(t *testing.T) {
	t.Setenv("EDGE_INFER_LIBCUDA", programtest.FakeDriver(t))
	t.Setenv("FAKE_CUDA", "devices=3")
	for named, want := range map[string][]int{"all": {0, 1, 2}, "0,2": {0, 2}, "1": {1}} {
		c := config.Default()
		c.Engine.GPU = named
		var devices []int
		builder := PredictorBuilder{OpenNetwork: func(_ context.Context, options predict.Options) (predict.Predictor, error) {
			devices = append(devices, options.Device)
			return nil, nil
		}}
		all, err := builder.OpenPerGPU(t.Context(), c, predict.Options{})
		require.NoError(t, err)
		require.Len(t, all, len(want))
		require.Equal(t, want, devices, named)
	}
}
