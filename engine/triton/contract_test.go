package triton_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/triton"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { remove(); os.Exit(code) }))
}

var quiet = slog.New(slog.DiscardHandler)

// patience is more than any request takes on a busy machine.
const patience = time.Minute

// serve starts a server that runs a model on ONNX Runtime, with what its file says of it as parameters.
func serve(t testing.TB, options engine.Options, change func(*kservetest.Server)) *kservetest.Server {
	local := options
	local.Metadata, local.Slots = engine.Metadata{}, 1
	e, err := onnxruntime.Open(local)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	file, err := onnx.Parse(options.Path, options.Bytes)
	require.NoError(t, err)
	return kservetest.New(t, e, file.Metadata(), change)
}

// at opens the engine on servers.
func at(ctx context.Context, scheme string, options engine.Options, servers ...*kservetest.Server) (*triton.Engine, error) {
	addresses := ""
	for _, s := range servers {
		if addresses != "" {
			addresses += ","
		}
		addresses += scheme + "://" + s.Address + "/" + kservetest.Name
	}
	return triton.Open(ctx, addresses, options, quiet)
}

// The contract of every backend, over both transports.
func TestContract(t *testing.T) {
	for _, scheme := range []string{"grpc", "http"} {
		t.Run(scheme, func(t *testing.T) {
			enginetest.Run(t, enginetest.Backend{
				Open: func(o engine.Options) (engine.Engine, error) {
					s := serve(t, o, nil)
					o.Remote.Timeout = patience
					return at(t.Context(), scheme, o, s)
				},
				SmallTypes: true, FreeSides: true, AllocationsPerFrame: 400,
			})
		})
	}
}

// A model with a second input is refused, with what would make it run.
func TestASecondInputIsRefused(t *testing.T) {
	options := enginetest.Network(t, "tensors")
	e, err := at(t.Context(), "grpc", options, serve(t, options, nil))
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	err = e.Submit(0, []engine.Image{{}})
	require.EqualError(t, err, "triton submit: the model takes no images: it has 2 inputs, images go to a single one; "+
		"the only other inputs supported are orig_target_sizes, pixel_mask, im_shape, scale_factor")
}
