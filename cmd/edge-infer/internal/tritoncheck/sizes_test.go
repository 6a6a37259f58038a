package tritoncheck

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

const sizesConfig = `backend: "python"
max_batch_size: 4
input { name: "orig_target_sizes" data_type: TYPE_INT64 dims: [2] }
input { name: "images" data_type: TYPE_FP32 dims: [3, 96, 128] }
output { name: "labels" data_type: TYPE_INT64 dims: [2] }
output { name: "boxes" data_type: TYPE_FP32 dims: [2, 4] }
output { name: "scores" data_type: TYPE_FP32 dims: [2] }
instance_group { count: 1 kind: KIND_CPU }
parameters { key: "names" value { string_value: "{0: 'person', 1: 'bicycle'}" } }
`

// A server's own model with a second input is a network like any other: boxes are asked for in pixels of the network's input and come out
// in those of the image.
func TestAServersModelWithASecondInput(t *testing.T) {
	installed(t)
	repository := t.TempDir()
	model, err := os.ReadFile("sizes.py")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(repository, "rtdetr/1"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(repository, "rtdetr/config.pbtxt"), []byte(sizesConfig), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(repository, "rtdetr/1/model.py"), model, 0o600))
	s := start(t, repository)
	images := filepath.Join(programtest.Scenes(t, 40, 7), "images")
	for _, way := range [][]string{
		{"http"}, {"grpc"}, {"http", "--remote-shared-memory=off"}, {"grpc", "--remote-shared-memory=off"}, {"grpc", "--batch", "4"},
	} {
		all := look(t, images, append([]string{"--engine", "triton=" + s.at(way[0], "rtdetr"), "--confidence", "0.05"}, way[1:]...)...)
		require.Len(t, all, 40)
		for _, one := range all {
			require.Len(t, one.Detections, 2, "%v", one)
			require.Equal(t, "person", one.Detections[0].Label)
			require.InDelta(t, 0.875, one.Detections[0].Score, 1e-3)
			require.InDeltaSlice(t, []float64{160, 90, 320, 270}, one.Detections[0].Box, 0.1)
			require.Equal(t, "bicycle", one.Detections[1].Label)
			require.InDeltaSlice(t, []float64{320, 45, 480, 180}, one.Detections[1].Box, 0.1)
		}
	}
}
