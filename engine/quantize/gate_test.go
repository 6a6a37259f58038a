package quantize_test

import (
	"context"
	"encoding/json"
	"errors"
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

// answers is a prepared comparison that remembers what it was shown.
type answers struct {
	comparison quantize.Comparison
	seen       [2]map[int]float32
}

// run has an engine be one side.
func (a *answers) run(t *testing.T, side quantize.Side, e engine.Engine) quantize.Run {
	a.seen[side] = map[int]float32{}
	return func(i int, s quantize.Sample) error {
		a.seen[side][i] = submit(t, e, s)[0]
		return nil
	}
}

func (a *answers) compare() quantize.Comparison { return a.comparison }

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
			quantize.Comparison{
				Pictures: 4, Reference: 100, MatchRate: 0.97, ReferenceAccuracy: accuracy(0.9, 0.743),
				CandidateAccuracy: accuracy(0.5, 0.324),
			},
			[]string{"match rate 0.9700 is under 0.9800", "mAP50-95 fell by 0.4190 from 0.7430, more than 0.0100"},
		},
		"better than the reference": {
			quantize.Comparison{Reference: 100, MatchRate: 0.99, ReferenceAccuracy: accuracy(0.9, 0.7), CandidateAccuracy: accuracy(0.9, 0.75)},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			comparer := &answers{comparison: test.comparison}
			gate := &quantize.Gate{Samples: patches{count: 4, unreadable: map[int]bool{2: true}}, Compare: comparer.compare}
			data, err := fragile(1).Bytes()
			require.NoError(t, err)
			e, err := open(data)
			require.NoError(t, err)
			defer e.Close()
			_, err = gate.Judge(ctx, comparer.run(t, quantize.Candidate, e))
			require.EqualError(t, err, "gate: the reference has not run")
			require.NoError(t, gate.Refer(ctx, comparer.run(t, quantize.Reference, e)))
			v, err := gate.Judge(ctx, comparer.run(t, quantize.Candidate, e))
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

func TestGateReportsErrors(t *testing.T) {
	gate := &quantize.Gate{Samples: patches{count: 1}, Compare: new(answers).compare}
	closed := func(int, quantize.Sample) error { return errors.New("engine is closed") }
	assert.EqualError(t, gate.Refer(context.Background(), closed), "gate reference: engine is closed")
	gate.Samples = patches{}
	assert.EqualError(t, gate.Refer(context.Background(), closed),
		"gate reference: quantize samples: there are none (name a directory with pictures)")
}
