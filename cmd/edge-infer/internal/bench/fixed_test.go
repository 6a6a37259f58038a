package bench

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
)

// TestAFixedBatchIsMeasuredAsItIs whatever was asked, and the log says so.
func TestAFixedBatchIsMeasuredAsItIs(t *testing.T) {
	const boxes = 8*8 + 4*4 + 2*2
	net := testnet.NewBuilder(1)
	x := net.Node("ReduceMean", "/mean", []string{net.Input("images", 1, 3, 64, 64)}, onnx.Int("keepdims", 0))
	zero := net.Node("Mul", "/zero", []string{x, net.Floats("/none", []float32{0}, 1)})
	values := slices.Repeat([]float32{0.05}, 6*boxes)
	net.Output(net.Node("Add", "/out", []string{zero, net.Floats("/map", values, 1, 6, boxes)}), 1, 6, boxes)
	model := net.Model(13)
	model.SetMetadata("names", "['bolt', 'nut']")
	data, err := proto.Marshal(model.Proto)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "fixed.onnx")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	for _, test := range []struct {
		batches []int
		notes   int
	}{{[]int{1, 4, 8}, 2}, {[]int{4, 8}, 1}, {[]int{1}, 0}} {
		var log bytes.Buffer
		b := newTestBench()
		b.Logger = slog.New(slog.NewTextHandler(&log, nil))
		b.Contenders[0].Model.Path, b.Contenders[0].Config.Engine.Backend = path, "onnxruntime=cpu"
		b.Batches, b.What, b.Duration, b.Cameras, b.Images = test.batches, []string{string(Transfers)}, extent{time: 50 * time.Millisecond}, 1, 2
		b.Width, b.Height, b.Level = 64, 64, -1
		report, err := b.Run(t.Context())
		require.NoError(t, err)
		require.Len(t, report.Results, 1)
		require.Equal(t, 1, report.Results[0].Batch)
		require.Positive(t, report.Results[0].Frames)
		require.Equal(t, test.notes, bytes.Count(log.Bytes(), []byte(`msg="batch not measured, the model has a fixed one" batch=`)), log.String())
	}
}
