package accuracy

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scenes is how many unseen scenes the demo model is judged on: EDGE_INFER_SCENES, or few enough for every test run.
func scenes(t *testing.T) int {
	text := os.Getenv("EDGE_INFER_SCENES")
	if text == "" {
		return 40
	}
	count, err := strconv.Atoi(text)
	require.NoError(t, err)
	return count
}

func open(model []byte) (engine.Engine, error) {
	return onnxruntime.Open(engine.Options{Path: "demo.onnx", Bytes: model, Slots: 1})
}

// draw writes labelled scenes and returns their labels.
func draw(t *testing.T, count int, seed uint64) *evaluate.Dataset {
	t.Helper()
	dir := t.TempDir() + "/scenes"
	require.NoError(t, scene.WriteDataset(context.Background(), dir, scene.DatasetOptions{Count: count, Seed: seed}))
	dataset, err := evaluate.ReadDataset(dir)
	require.NoError(t, err)
	require.NoError(t, dataset.Relabel(demo.Labels()))
	return dataset
}

func pictures(t *testing.T, dataset *evaluate.Dataset) *quantize.Pictures {
	reader := &Reader{}
	t.Cleanup(reader.Close)
	p := &quantize.Pictures{Decode: reader.Read}
	for i := range dataset.Pictures {
		p.Files = append(p.Files, dataset.Pictures[i].Path)
	}
	return p
}

func calibrate(t *testing.T, model *onnx.Model, plan *quantize.Plan, samples quantize.Samples) quantize.Ranges {
	t.Helper()
	c := quantize.Collector{Model: model, Tensors: plan.Tensors, Open: open, Samples: samples}
	cache, err := c.Run(context.Background())
	require.NoError(t, err)
	return cache.Ranges
}

func judge(t *testing.T, gate *quantize.Gate, m *onnx.Model) (*quantize.Verdict, int, time.Duration) {
	t.Helper()
	data, err := m.Bytes()
	require.NoError(t, err)
	e, err := open(data)
	require.NoError(t, err)
	defer e.Close()
	started := time.Now()
	v, err := gate.Judge(context.Background(), e)
	require.NoError(t, err)
	return v, len(data), time.Since(started) / time.Duration(gate.Samples.Len())
}

// The demo model keeps its accuracy in FP16 and in INT8 by every method, and bad calibration is caught.
func TestDemoModelKeepsItsAccuracy(t *testing.T) {
	ctx := context.Background()
	unseen := draw(t, scenes(t), 990001)
	gate := &quantize.Gate{Samples: pictures(t, unseen), MatchRate: 0.97}
	comparer := &Comparer{}
	for i := range unseen.Pictures {
		comparer.Truths = append(comparer.Truths, unseen.Pictures[i].Truths)
	}
	gate.Comparer = comparer
	m, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	e, err := open(demo.Model())
	require.NoError(t, err)
	require.NoError(t, comparer.Open(e.Model()))
	require.NoError(t, gate.Refer(ctx, e))
	require.NoError(t, e.Close())

	report := func(name string, v *quantize.Verdict, size int, each time.Duration) {
		c := v.Comparison
		t.Logf("%-22s mAP50 %.4f mAP50-95 %.4f (fp32 %.4f %.4f) match %.4f of %d boxes, flipped %d, drift mean %.4f max %.4f, %7d bytes, %.1f ms a picture, passed %v %q", name,
			c.CandidateAccuracy.MAP50, c.CandidateAccuracy.MAP, c.ReferenceAccuracy.MAP50, c.ReferenceAccuracy.MAP, c.MatchRate, c.Reference, c.Flipped, c.MeanDrift, c.MaxDrift, size,
			float64(each.Microseconds())/1000, v.Passed, v.Reasons)
	}
	v, size, each := judge(t, gate, m)
	report("fp32", v, size, each)
	assert.True(t, v.Passed)
	assert.EqualValues(t, 1, v.Comparison.MatchRate)

	half := m.Clone()
	_, err = quantize.ToHalf(half, quantize.HalfOptions{})
	require.NoError(t, err)
	v, size, each = judge(t, gate, half)
	report("fp16", v, size, each)
	assert.True(t, v.Passed, v.Reasons)
	assert.InDelta(t, v.Comparison.ReferenceAccuracy.MAP, v.Comparison.CandidateAccuracy.MAP, 0.002)

	prepared, err := quantize.Prepare(m)
	require.NoError(t, err)
	plan, err := quantize.NewPlan(prepared, quantize.Options{})
	require.NoError(t, err)
	t.Logf("%d of %d layers in INT8", plan.Count(), len(plan.Layers))
	known := draw(t, min(200, scenes(t)), 7)
	ranges := calibrate(t, prepared, plan, pictures(t, known))
	for _, method := range quantize.Methods() {
		plan, err := quantize.NewPlan(prepared, quantize.Options{Method: method, StoreInt8: true})
		require.NoError(t, err)
		int8, err := plan.Apply(ranges)
		require.NoError(t, err)
		v, size, each = judge(t, gate, int8)
		report("int8 "+string(method), v, size, each)
		assert.InDelta(t, v.Comparison.ReferenceAccuracy.MAP, v.Comparison.CandidateAccuracy.MAP, 0.01, "%s", method)
	}
}
