package quantize_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// submit runs one sample and copies the first output.
func submit(t *testing.T, e engine.Engine, s quantize.Sample) []float32 {
	t.Helper()
	require.NoError(t, e.Submit(0, []engine.Image{s.Image}))
	result, err := e.Wait(0)
	require.NoError(t, err)
	return append([]float32{}, result.Outputs[0].Float32s()...)
}

// answers is a comparer with a prepared comparison that remembers what it was shown.
type answers struct {
	comparison quantize.Comparison
	seen       [2]map[int]float32
}

func (a *answers) Detect(side quantize.Side, i int, s quantize.Sample, result *engine.Result) error {
	if a.seen[side] == nil {
		a.seen[side] = make(map[int]float32)
	}
	a.seen[side][i] = result.Outputs[0].Float32s()[0]
	return nil
}

func (a *answers) Compare() quantize.Comparison { return a.comparison }

func TestGate(t *testing.T) {
	accuracy := func(map50, m float64) *quantize.Accuracy { return &quantize.Accuracy{MAP50: map50, MAP: m} }
	for name, test := range map[string]struct {
		comparison quantize.Comparison
		want       []string
	}{
		"good": {quantize.Comparison{Pictures: 4, Reference: 100, Candidate: 99, MatchRate: 0.99}, nil},
		"few boxes": {
			quantize.Comparison{Pictures: 4, Reference: 19, MatchRate: 1},
			[]string{"the reference found 19 boxes in 4 pictures, fewer than 20 prove nothing: use pictures of what the model detects"},
		},
		"mismatch": {quantize.Comparison{Pictures: 4, Reference: 100, MatchRate: 0.97}, []string{"match rate 0.9700 is under 0.9800"}},
		"lost accuracy": {
			quantize.Comparison{Pictures: 4, Reference: 100, MatchRate: 0.97, ReferenceAccuracy: accuracy(0.9, 0.743), CandidateAccuracy: accuracy(0.5, 0.324)},
			[]string{"match rate 0.9700 is under 0.9800", "mAP50-95 fell by 0.4190 from 0.7430, more than 0.0100"},
		},
		"better than the reference": {quantize.Comparison{Reference: 100, MatchRate: 0.99, ReferenceAccuracy: accuracy(0.9, 0.7), CandidateAccuracy: accuracy(0.9, 0.75)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			comparer := &answers{comparison: test.comparison}
			gate := &quantize.Gate{Samples: patches{count: 4, unreadable: map[int]bool{2: true}}, Comparer: comparer}
			data, err := fragile(1).Bytes()
			require.NoError(t, err)
			e, err := open(data)
			require.NoError(t, err)
			defer e.Close()
			_, err = gate.Judge(ctx, e)
			require.EqualError(t, err, "gate: the reference has not run")
			require.NoError(t, gate.Refer(ctx, e))
			v, err := gate.Judge(ctx, e)
			require.NoError(t, err)
			assert.Equal(t, test.want, v.Reasons)
			assert.Equal(t, len(test.want) == 0, v.Passed)
			assert.Equal(t, []string{"patch 2"}, v.Skipped)
			assert.Equal(t, comparer.seen[0], comparer.seen[1])
			assert.Len(t, comparer.seen[0], 3)

			path := filepath.Join(t.TempDir(), "verdict.json")
			require.NoError(t, v.Save(path))
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			var back quantize.Verdict
			require.NoError(t, json.Unmarshal(text, &back))
			assert.Equal(t, *v, back)
		})
	}
}

// closed is an engine that fails.
type closed struct{ engine.Engine }

func (closed) Submit(int, []engine.Image) error { return errors.New("engine is closed") }

func TestGateReportsEngineErrors(t *testing.T) {
	gate := &quantize.Gate{Samples: patches{count: 1}, Comparer: &answers{}}
	assert.EqualError(t, gate.Refer(context.Background(), closed{}), "gate reference: engine is closed")
	gate.Samples = patches{}
	assert.EqualError(t, gate.Refer(context.Background(), closed{}), "gate reference: quantize samples: there are none (name a directory with pictures)")
}

func TestPlot(t *testing.T) {
	curves := []quantize.Curve{
		{Name: "reference", Recall: []float64{0, 0.5, 1}, Precision: []float64{1, 0.9, 0.2}},
		{Name: "candidate", Recall: []float64{0, 0.5, 1}, Precision: []float64{1, 0.85, 0.1}},
	}
	pairs := make([]quantize.ScorePair, 5000)
	for i := range pairs {
		pairs[i] = quantize.ScorePair{Reference: float32(i) / 5000, Candidate: float32(i) / 5001}
	}
	for _, test := range []struct {
		curves []quantize.Curve
		pairs  []quantize.ScorePair
		want   []string
	}{
		{curves, pairs, []string{"precision at IoU 0.5", "candidate", "score of the reference", "FP32 and INT8"}},
		{nil, nil, []string{"score of the candidate"}},
	} {
		var svg bytes.Buffer
		require.NoError(t, quantize.WritePlot(&svg, "FP32 and INT8", test.curves, test.pairs))
		for _, text := range test.want {
			assert.Contains(t, svg.String(), text)
		}
		assert.Less(t, svg.Len(), 1<<20)
		for decoder := xml.NewDecoder(&svg); ; {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "the plot is well-formed")
		}
	}
}
