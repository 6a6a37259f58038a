package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/nvdec"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestSelftest: without a GPU the parts that need one are skipped, each with its reason; with a stand-in GPU the kernels, graphs and memory
// pass, and a network that detects other boxes than the CPU fails.
func TestSelftest(t *testing.T) {
	t.Parallel()
	gpu, model := programtest.StandInGPU(t)
	for _, test := range []struct {
		name        string
		environment []string
		arguments   []string
		want        map[string]diagnose.Status
		failed      string
	}{
		{
			"without a GPU",
			[]string{"EDGE_INFER_LIBCUDA=/none", "EDGE_INFER_TENSORRT="},
			nil,
			map[string]diagnose.Status{
				"image kernels": diagnose.Skip, "graphs": diagnose.Skip, "zero copy": diagnose.Skip, "memory times": diagnose.Skip,
				"H.264 to CUDA": diagnose.Skip, "network in fp32": diagnose.Skip,
				"DLA": diagnose.Skip, "CSI camera": diagnose.Skip, "load": diagnose.OK,
				"RTSP H.264, opened again": diagnose.OK, "RTSP H.265, opened again": diagnose.OK, "ONNX Runtime": diagnose.OK,
				"model": diagnose.OK, "camera": diagnose.Skip, "MQTT broker": diagnose.Skip,
			},
			"",
		},
		{
			"with stand-ins",
			append(gpu, nvdec.LibraryEnvironment+"="+programtest.StandInNVDEC(t), "FAKE_NVCUVID=large"),
			[]string{"--model", model},
			map[string]diagnose.Status{
				"image kernels": diagnose.OK, "graphs": diagnose.OK, "zero copy": diagnose.OK, "memory times": diagnose.OK,
				"H.264 to CUDA": diagnose.OK, "H.265 to CUDA": diagnose.OK, "network in fp32": diagnose.Fail, "network in int8": diagnose.Fail,
			},
			"boxes of ONNX Runtime on the CPU found",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "selftest.md")
			arguments := append([]string{"selftest", "--json", "--load", "1s", "--report", file}, test.arguments...)
			c := programtest.CommandWith(t, test.environment, arguments...)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			output, err := c.Output()
			var report struct {
				Failed int
				Checks []diagnose.Check
			}
			require.NoError(t, json.Unmarshal(output, &report), "%s %s", output, &stderr)
			require.Equal(t, report.Failed > 0, err != nil, "%v %s", err, &stderr)
			checks := map[string]diagnose.Check{}
			for _, c := range report.Checks {
				checks[c.Name] = c
				require.NotEmpty(t, c.Detail, c.Name)
			}
			for check, status := range test.want {
				require.Equal(t, status, checks[check].Status, "%s: %s", check, checks[check].Detail)
			}
			if test.want["zero copy"] == diagnose.OK {
				require.Regexp(t, `mapped \d+ us, copied \d+ us, managed \d+ us$`, checks["memory times"].Detail)
				require.Regexp(t, `^NVDEC: 6\d images of 1280x720 NV12, median \d+ us to CUDA memory, \d+ us more to host memory$`,
					checks["H.265 to CUDA"].Detail)
			}
			if test.failed != "" {
				require.Contains(t, checks["network in fp32"].Detail, test.failed)
				require.Contains(t, checks["network in int8"].Detail, test.failed)
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Regexp(t, `1280x720 at [0-9.]+ of 30 fps, first image after [0-9.]+ s, \w+`, checks["RTSP H.264, 1 at once"].Detail)
			require.Regexp(t, `1280x720 at [0-9.]+ of 30 fps, first image after [0-9.]+ s, \w+`, checks["RTSP H.265, 8 at once"].Detail)
			require.Regexp(t, `images a second for \d+s; least memory available \d+ of \d+ MiB`, checks["load"].Detail)
			require.Contains(t, string(text), "| image kernels | "+string(test.want["image kernels"])+" |")
		})
	}
}
