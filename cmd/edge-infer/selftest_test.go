package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/selftest"
)

// TestSelftest: without a GPU what needs one is not here, each with its reason; with stand-ins for one the kernels, graphs and memory are
// tried in earnest, and a network that sees other boxes than the CPU's fails.
func TestSelftest(t *testing.T) {
	t.Parallel()
	gpu, model := programtest.StandInGPU(t)
	for _, test := range []struct {
		name        string
		environment []string
		arguments   []string
		want        map[string]selftest.Status
		failed      string
	}{
		{
			"without a GPU",
			[]string{"EDGE_INFER_LIBCUDA=/none", "EDGE_INFER_TENSORRT="},
			nil,
			map[string]selftest.Status{
				"image kernels": selftest.Absent, "graphs": selftest.Absent, "zero copy": selftest.Absent, "network in fp32": selftest.Absent,
				"DLA": selftest.Absent, "video decoder (NVDEC)": selftest.Absent, "CSI camera": selftest.Absent, "ONNX Runtime": selftest.OK,
				"model": selftest.OK, "camera": selftest.Absent, "MQTT broker": selftest.Absent,
			},
			"",
		},
		{
			"with stand-ins", gpu,
			[]string{"--model", model},
			map[string]selftest.Status{
				"image kernels": selftest.OK, "graphs": selftest.OK, "zero copy": selftest.OK, "network in fp32": selftest.Failed,
			},
			"boxes that ONNX Runtime finds on the CPU",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "selftest.md")
			c := programtest.CommandWith(t, test.environment, append([]string{"selftest", "--json", "--report", file}, test.arguments...)...)
			var said bytes.Buffer
			c.Stderr = &said
			output, err := c.Output()
			var told struct {
				Failed int
				Parts  []selftest.Result
			}
			require.NoError(t, json.Unmarshal(output, &told), "%s %s", output, &said)
			require.Equal(t, told.Failed > 0, err != nil, "%v %s", err, &said)
			parts := map[string]selftest.Result{}
			for _, r := range told.Parts {
				parts[r.Part] = r
				require.NotEmpty(t, r.Detail, r.Part)
				require.NotContains(t, r.Detail, string(selftest.Absent), "the status says that")
			}
			for part, status := range test.want {
				require.Equal(t, status, parts[part].Status, "%s: %s", part, parts[part].Detail)
			}
			if test.failed != "" {
				require.Contains(t, parts["network in fp32"].Detail, test.failed)
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), "| image kernels | "+string(test.want["image kernels"])+" |")
		})
	}
}
