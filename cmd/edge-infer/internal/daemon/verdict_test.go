package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/convert"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
)

// What the gate found about a model is said where the model runs, as long as it is that very file.
func TestVerdictOnWhatRuns(t *testing.T) {
	t.Parallel()
	data, half := programtest.Scenes(t, 6, 99), filepath.Join(t.TempDir(), "half.onnx")
	q := &convert.Quantize{
		Precision: "fp16", Output: half, INT8Options: convert.INT8Options{
			Data: data, Method: string(quantize.DefaultMethod), Percentile: quantize.DefaultPercentile,
			Limits: accuracy.Limits{MatchRate: quantize.DefaultMatchRate, MaxLoss: quantize.DefaultMaxLoss},
		},
	}
	require.NoError(t, q.Check())
	_, err := q.Run(t.Context())
	require.NoError(t, err)
	p := programtest.Start(t, "--camera", "demo?width=640&height=360", "--model", half, "--engine", "onnxruntime", "--mqtt", "off",
		"--frames", "2")
	line, more := p.Line()
	require.True(t, more)
	assert.Equal(t, "camera cam0, demo?width=640&height=360", line)
	line, _ = p.Line()
	assert.Regexp(t, `^model  \S+half.onnx \(yolov8, input \d+x\d+\)$`, line)
	line, _ = p.Line()
	assert.Regexp(t, `^engine onnxruntime \S+, CPU, \d+ threads, fp16$`, line)
	line, _ = p.Line()
	assert.Regexp(t, `^accuracy in fp16: 1.0000 of \d+ boxes as in FP32, mAP50-95 0\.\d{4} of 0\.\d{4}, on 6 images, \d{4}-\d\d-\d\d$`, line)
	require.NoError(t, p.Stop(syscall.SIGINT))
}

// The status of a plan that a gate let pass names the precisions that it did not.
func TestVerdictReachesTheBroker(t *testing.T) {
	t.Parallel()
	environment, model := programtest.FakeMachine(t, 100300)
	plan := filepath.Join(t.TempDir(), "belt.plan")
	require.NoError(t, programtest.CommandWith(t, environment, "build", model, "--precision", "fp16", "-o", plan).Run())
	file, err := os.ReadFile(plan)
	require.NoError(t, err)
	v := &quantize.Verdict{
		Passed: true, Time: time.Date(2026, 11, 21, 5, 6, 7, 0, time.UTC),
		Comparison: quantize.Comparison{Images: 3, Reference: 20, MatchRate: 1},
		Refused:    []quantize.Refusal{{Precision: engine.INT8, Reasons: []string{"match rate 0.4000 is under 0.9800"}}},
	}
	v.SetModel(file, engine.FP16)
	require.NoError(t, v.Save(plan+accuracy.VerdictSuffix))
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	received := programtest.Subscribe(t, port, "edge-infer/gate/#")
	p := programtest.StartWith(t, environment, "--camera", "demo?width=640&height=360", "--model", plan, "--engine", "tensorrt",
		"--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", port), "--name", "gate", "--json")
	before := programtest.Until(t, received,
		`"accuracy":{"precision":"fp16","passed":true,"match_rate":1.0000,"boxes":20,"flipped":0,"images":3,"time":"2026-11-21T05:06:07.000000Z",`+
			`"refused":[{"precision":"int8","reason":"match rate 0.4000 is under 0.9800"}]}`)
	assert.False(t, strings.Contains(strings.Join(before, ""), "edge-infer/gate/status {"), "it is in the first one")
	require.NoError(t, p.Stop(syscall.SIGINT))
}
