package accuracy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// scenes is how many unseen scenes the demo model is judged on: EDGE_INFER_SCENES, or few enough for every test run.
func scenes(t *testing.T) int {
	text := os.Getenv("EDGE_INFER_SCENES")
	if text == "" {
		return 20
	}
	count, err := strconv.Atoi(text)
	require.NoError(t, err)
	return count
}

func open(model []byte) (engine.Engine, error) {
	return onnxruntime.Open(engine.Options{Path: "demo.onnx", Bytes: model, Slots: 1})
}

func openRaw(model []byte) (quantize.Runner, error) {
	e, err := open(model)
	if err != nil {
		return nil, err
	}
	return predict.WrapRaw(e), nil
}

// draw writes labelled scenes and returns their labels.
func draw(t *testing.T, count int, seed uint64) *evaluate.Dataset {
	t.Helper()
	dir := t.TempDir() + "/scenes"
	require.NoError(t, scene.WriteDataset(context.Background(), dir, scene.DatasetOptions{Count: count, Seed: seed}))
	dataset, err := evaluate.ReadDataset(dir, "")
	require.NoError(t, err)
	require.NoError(t, dataset.Relabel(scene.Labels(), nil))
	return dataset
}

func images(t *testing.T, dataset *evaluate.Dataset) *quantize.Images {
	reader := &media.Reader{}
	t.Cleanup(reader.Close)
	p := &quantize.Images{Decode: reader.Read}
	for i := range dataset.Images {
		p.Files = append(p.Files, dataset.Images[i].Path)
	}
	return p
}

func calibrate(t *testing.T, model *onnx.Model, plan *quantize.Plan, samples quantize.Samples) quantize.Ranges {
	t.Helper()
	c := quantize.Collector{Model: model, Tensors: plan.Tensors, Open: openRaw, Samples: samples}
	cache, err := c.Run(context.Background())
	require.NoError(t, err)
	return cache.Ranges
}

// demoGate judges against the embedded model in FP32 on scenes that neither training nor calibration has seen.
type demoGate struct {
	samples  quantize.Samples
	maxLoss  float64
	comparer Comparer
}

func newDemoGate(t *testing.T, count int) *demoGate {
	t.Helper()
	unseen := draw(t, count, 990001)
	g := &demoGate{}
	for i := range unseen.Images {
		g.comparer.Truths = append(g.comparer.Truths, unseen.Images[i].Truths)
	}
	g.samples = images(t, unseen)
	g.run(t, Reference, predictor(t, demo.Model()))
	return g
}

// predictor opens a model until the test ends.
func predictor(t *testing.T, model []byte) predict.Predictor {
	t.Helper()
	e, err := open(model)
	require.NoError(t, err)
	n, err := new(Gate).wrap(e)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

func (g *demoGate) judge(t *testing.T, m *onnx.Model) (*quantize.Verdict, int, time.Duration) {
	t.Helper()
	data, err := m.Bytes()
	require.NoError(t, err)
	candidate := predictor(t, data)
	started := time.Now()
	g.run(t, Candidate, candidate)
	v, err := quantize.NewVerdict(g.comparer.Compare(), 0.97, g.maxLoss, g.samples, nil)
	require.NoError(t, err)
	return v, len(data), time.Since(started) / time.Duration(g.samples.Len())
}

func (g *demoGate) run(t *testing.T, side Side, p predict.Predictor) {
	t.Helper()
	_, err := g.comparer.Run(t.Context(), side, p, g.samples, func(int, int) {})
	require.NoError(t, err)
}

func report(t *testing.T, name string, v *quantize.Verdict, size int, each time.Duration) {
	c := v.Comparison
	t.Logf("%-18s mAP50 %.4f mAP50-95 %.4f (fp32 %.4f %.4f) match %.4f of %d boxes, flipped %d, drift mean %.4f max %.4f, %7d bytes, %.1f ms an image, passed %v %q", name,
		c.CandidateAccuracy.MAP50, c.CandidateAccuracy.MAP, c.ReferenceAccuracy.MAP50, c.ReferenceAccuracy.MAP, c.MatchRate, c.Reference,
		c.Flipped, c.MeanDrift, c.MaxDrift, size,
		float64(each.Microseconds())/1000, v.Passed, v.Reasons)
}

// The demo model keeps its accuracy in FP16 and in INT8 by every method, and bad calibration is caught.
func TestDemoModelKeepsItsAccuracy(t *testing.T) {
	gate := newDemoGate(t, scenes(t))
	m, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	v, size, each := gate.judge(t, m)
	report(t, "fp32", v, size, each)
	assert.True(t, v.Passed)
	assert.EqualValues(t, 1, v.Comparison.MatchRate)

	half := m.Clone()
	_, err = quantize.ConvertFP16(half, quantize.FP16Options{})
	require.NoError(t, err)
	v, size, each = gate.judge(t, half)
	report(t, "fp16", v, size, each)
	assert.True(t, v.Passed, v.Reasons)
	assert.InDelta(t, v.Comparison.ReferenceAccuracy.MAP, v.Comparison.CandidateAccuracy.MAP, 0.002)

	prepared, err := quantize.Prepare(m)
	require.NoError(t, err)
	plan, err := quantize.NewPlan(prepared, quantize.Options{})
	require.NoError(t, err)
	t.Logf("%d of %d layers in INT8", plan.Count(), len(plan.Layers))
	// Few scenes scatter by about a hundredth themselves.
	allowed := 0.01
	if scenes(t) < 300 {
		allowed = 0.03
	}
	known := draw(t, min(200, scenes(t)), 7)
	ranges := calibrate(t, prepared, plan, images(t, known))
	for _, method := range quantize.Methods() {
		plan, err := quantize.NewPlan(prepared, quantize.Options{Method: method, StoreInt8: true})
		require.NoError(t, err)
		int8, err := plan.Apply(ranges)
		require.NoError(t, err)
		v, size, each = gate.judge(t, int8)
		report(t, "int8 "+string(method), v, size, each)
		assert.InDelta(t, v.Comparison.ReferenceAccuracy.MAP, v.Comparison.CandidateAccuracy.MAP, allowed, "%s", method)
	}

	// Calibration images that are nothing like service: the gate must refuse what comes of them.
	for _, bad := range []struct {
		name    string
		samples quantize.Samples
	}{{"noise", still{8, noise}}, {"one black image", still{1, black}}, {"one flat image", still{1, flat}}} {
		plan, err := quantize.NewPlan(prepared, quantize.Options{})
		require.NoError(t, err)
		int8, err := plan.Apply(calibrate(t, prepared, plan, bad.samples))
		require.NoError(t, err)
		v, size, each = gate.judge(t, int8)
		report(t, bad.name, v, size, each)
		assert.False(t, v.Passed, bad.name)
	}
}

// Under a strict gate the search trades a few layers of INT8 for accuracy.
func TestSearchOnDemoModel(t *testing.T) {
	if scenes(t) < 300 {
		t.Skip("takes minutes; EDGE_INFER_SCENES=1000 runs it")
	}
	ctx := context.Background()
	gate := newDemoGate(t, scenes(t))
	gate.maxLoss = 0.004
	m, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	prepared, err := quantize.Prepare(m)
	require.NoError(t, err)
	plan, err := quantize.NewPlan(prepared, quantize.Options{})
	require.NoError(t, err)
	search := quantize.Search{
		Model: prepared, Ranges: calibrate(t, prepared, plan, images(t, draw(t, 200, 7))), Open: openRaw, Samples: images(t, draw(t, 8, 70)),
		Judge: func(_ context.Context, m *onnx.Model) (*quantize.Verdict, error) {
			v, size, each := gate.judge(t, m)
			report(t, "search", v, size, each)
			return v, nil
		},
	}
	found, err := search.Run(ctx)
	require.NoError(t, err)
	assert.True(t, found.Verdict.Passed)
	t.Logf("%d of %d layers in INT8 after %d models", found.Plan.Count(), len(found.Plan.Layers), found.Judged)
	for _, l := range found.Layers {
		if l.Excluded {
			t.Logf("%s stays in floating point: alone in INT8 it causes a relative error of %.6f of the head's outputs", l.Name, l.Error)
		}
	}
}

// still are images without anything to detect.
type still struct {
	count int
	pixel func(*rand.Rand) byte
}

func noise(random *rand.Rand) byte { return byte(random.IntN(256)) }
func black(*rand.Rand) byte        { return 0 }
func flat(*rand.Rand) byte         { return 114 }

func (s still) Len() int              { return s.count }
func (s still) Name(i int) string     { return fmt.Sprint("image ", i) }
func (s still) Hash() (string, error) { return "still", nil }

func (s still) Load(i int) (quantize.Sample, error) {
	random := rand.New(rand.NewPCG(uint64(i), 0))
	data := make([]byte, 3*640*360)
	for k := range data {
		data[k] = s.pixel(random)
	}
	return quantize.Sample{Image: engine.Image{Data: data, Width: 640, Height: 360, Stride: 3 * 640, Format: engine.BGR}}, nil
}
