package accuracy

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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
		return 20
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

// demoGate judges against the embedded model in FP32 on scenes that neither training nor calibration has seen.
func demoGate(t *testing.T, count int) *quantize.Gate {
	t.Helper()
	unseen := draw(t, count, 990001)
	comparer := &Comparer{}
	for i := range unseen.Pictures {
		comparer.Truths = append(comparer.Truths, unseen.Pictures[i].Truths)
	}
	gate := &quantize.Gate{Samples: pictures(t, unseen), Comparer: comparer, MatchRate: 0.97}
	e, err := open(demo.Model())
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, comparer.Open(e.Model()))
	require.NoError(t, gate.Refer(context.Background(), e))
	return gate
}

func report(t *testing.T, name string, v *quantize.Verdict, size int, each time.Duration) {
	c := v.Comparison
	t.Logf("%-18s mAP50 %.4f mAP50-95 %.4f (fp32 %.4f %.4f) match %.4f of %d boxes, flipped %d, drift mean %.4f max %.4f, %7d bytes, %.1f ms a picture, passed %v %q", name,
		c.CandidateAccuracy.MAP50, c.CandidateAccuracy.MAP, c.ReferenceAccuracy.MAP50, c.ReferenceAccuracy.MAP, c.MatchRate, c.Reference, c.Flipped, c.MeanDrift, c.MaxDrift, size,
		float64(each.Microseconds())/1000, v.Passed, v.Reasons)
}

// The demo model keeps its accuracy in FP16 and in INT8 by every method, and bad calibration is caught.
func TestDemoModelKeepsItsAccuracy(t *testing.T) {
	gate := demoGate(t, scenes(t))
	m, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	v, size, each := judge(t, gate, m)
	report(t, "fp32", v, size, each)
	assert.True(t, v.Passed)
	assert.EqualValues(t, 1, v.Comparison.MatchRate)

	half := m.Clone()
	_, err = quantize.ToHalf(half, quantize.HalfOptions{})
	require.NoError(t, err)
	v, size, each = judge(t, gate, half)
	report(t, "fp16", v, size, each)
	assert.True(t, v.Passed, v.Reasons)
	assert.InDelta(t, v.Comparison.ReferenceAccuracy.MAP, v.Comparison.CandidateAccuracy.MAP, 0.002)

	comparer := gate.Comparer.(*Comparer)
	curves := comparer.Curves()
	require.Len(t, curves, 2)
	mean := 0.0
	for _, precision := range curves[quantize.Candidate].Precision {
		mean += precision / 101
	}
	assert.InDelta(t, v.Comparison.CandidateAccuracy.MAP50, mean, 1e-9, "the area under the curve is the average precision")
	scores := comparer.Scores()
	assert.GreaterOrEqual(t, len(scores), v.Comparison.Matched)
	for _, pair := range scores {
		assert.InDelta(t, pair.Reference, pair.Candidate, 0.05)
	}
	var svg bytes.Buffer
	require.NoError(t, quantize.WritePlot(&svg, "FP16 against FP32", curves, scores))
	assert.Contains(t, svg.String(), "</svg>")

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
	ranges := calibrate(t, prepared, plan, pictures(t, known))
	for _, method := range quantize.Methods() {
		plan, err := quantize.NewPlan(prepared, quantize.Options{Method: method, StoreInt8: true})
		require.NoError(t, err)
		int8, err := plan.Apply(ranges)
		require.NoError(t, err)
		v, size, each = judge(t, gate, int8)
		report(t, "int8 "+string(method), v, size, each)
		assert.InDelta(t, v.Comparison.ReferenceAccuracy.MAP, v.Comparison.CandidateAccuracy.MAP, allowed, "%s", method)
	}

	// Calibration pictures that are nothing like service: the gate must refuse what comes of them.
	for _, bad := range []struct {
		name    string
		samples quantize.Samples
	}{{"noise", still{8, noise}}, {"one black picture", still{1, black}}, {"one flat picture", still{1, flat}}} {
		plan, err := quantize.NewPlan(prepared, quantize.Options{})
		require.NoError(t, err)
		int8, err := plan.Apply(calibrate(t, prepared, plan, bad.samples))
		require.NoError(t, err)
		v, size, each = judge(t, gate, int8)
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
	gate := demoGate(t, scenes(t))
	gate.MaxLoss = 0.004
	m, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	prepared, err := quantize.Prepare(m)
	require.NoError(t, err)
	plan, err := quantize.NewPlan(prepared, quantize.Options{})
	require.NoError(t, err)
	search := quantize.Search{
		Model: prepared, Ranges: calibrate(t, prepared, plan, pictures(t, draw(t, 200, 7))), Open: open, Samples: pictures(t, draw(t, 8, 70)),
		Judge: func(_ context.Context, m *onnx.Model) (*quantize.Verdict, error) {
			v, size, each := judge(t, gate, m)
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
			t.Logf("%s stays in floating point: alone it costs %.6f of the head's outputs", l.Name, l.Error)
		}
	}
}

// still are pictures without anything to detect.
type still struct {
	count int
	pixel func(*rand.Rand) byte
}

func noise(random *rand.Rand) byte { return byte(random.IntN(256)) }
func black(*rand.Rand) byte        { return 0 }
func flat(*rand.Rand) byte         { return 114 }

func (s still) Len() int              { return s.count }
func (s still) Name(i int) string     { return fmt.Sprint("picture ", i) }
func (s still) Hash() (string, error) { return "still", nil }

func (s still) Load(i int) (quantize.Sample, error) {
	random := rand.New(rand.NewPCG(uint64(i), 0))
	data := make([]byte, 3*640*360)
	for k := range data {
		data[k] = s.pixel(random)
	}
	return quantize.Sample{Image: engine.Image{Data: data, Width: 640, Height: 360, Stride: 3 * 640, Format: engine.BGR}}, nil
}

func TestReaderNamesWhatItCannotRead(t *testing.T) {
	var reader Reader
	defer reader.Close()
	path := filepath.Join(t.TempDir(), "cut.jpg")
	require.NoError(t, os.WriteFile(path, []byte("\xff\xd8\xff\xe0cut"), 0o600))
	for _, path := range []string{path, path + ".absent.jpg"} {
		_, err := reader.Read(path)
		assert.ErrorContains(t, err, path)
	}
}
