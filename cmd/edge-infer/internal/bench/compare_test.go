package bench

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestComparison(t *testing.T) {
	run := func(batch int, fps, p99 float64) Result {
		return Result{
			What: Loop, Drive: FlatOut, Engine: "tensorrt", Model: "m.onnx", Precision: "fp16", Batch: batch, FPS: fps,
			Latency: Latency{P99: p99},
		}
	}
	busy := 0.5
	c := Compare(
		&Report{Machine: Machine{CPUs: 2}, Results: []Result{run(1, 100, 10), run(4, 300, 0)}},
		&Report{
			Machine: Machine{CPUs: 4}, Load: Load{Before: &busy}, Results: []Result{run(1, 150, 8), run(8, 900, 1)},
		},
	)
	var text bytes.Buffer
	require.NoError(t, c.Print(&text))
	require.Contains(t, text.String(), "m.onnx, tensorrt, fp16, loop, flat-out, batch 1\n")
	require.Regexp(t, `(?m)^ +A +B +B/A\n +fps +100\.000 +150\.000 +1\.500\n`, text.String())
	require.Regexp(t, `(?m)^ +p99 ms +10\.000 +8\.000 +0\.800$`, text.String())
	require.Contains(t, text.String(), `only in B: m.onnx, tensorrt, fp16, loop, flat-out, batch 8
only in A: m.onnx, tensorrt, fp16, loop, flat-out, batch 4
note: machines: 2 CPUs (), 4 CPUs ()
note: B was measured on a machine that was 50 % busy
`)
}
