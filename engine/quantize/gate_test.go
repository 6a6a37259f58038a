package quantize_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// submit runs one sample and copies the first output.
func submit(t *testing.T, e quantize.Runner, s quantize.Sample) []float32 {
	t.Helper()
	result, err := e.Images(s.Image)
	require.NoError(t, err)
	return append([]float32{}, result.Outputs[0].Float32s()...)
}

// answers is a prepared comparison that records the samples.
type answers struct {
	comparison quantize.Comparison
	seen       [2]map[int]float32
}

// run runs an engine as one side.
func (a *answers) run(t *testing.T, side quantize.Side, e quantize.Runner) quantize.RunSample {
	a.seen[side] = map[int]float32{}
	return func(i int, s quantize.Sample) error {
		a.seen[side][i] = submit(t, e, s)[0]
		return nil
	}
}

func (a *answers) compare() quantize.Comparison { return a.comparison }

func TestGate(t *testing.T) {
	labelled := func(of float64, loss quantize.Loss) quantize.Comparison {
		return quantize.Comparison{
			Images: 4, Reference: 100, MatchRate: 0.5, ReferenceAccuracy: &quantize.Accuracy{MAP: of},
			CandidateAccuracy: &quantize.Accuracy{MAP: of - loss.MAP}, Loss: &loss,
		}
	}
	for name, test := range map[string]struct {
		comparison quantize.Comparison
		want       []string
	}{
		"good": {quantize.Comparison{Images: 4, Reference: 100, Candidate: 99, MatchRate: 0.99}, nil},
		"few boxes": {
			quantize.Comparison{Images: 4, Reference: 19, MatchRate: 1},
			[]string{"the reference found 19 boxes in 4 images, fewer than 20 prove nothing: use images of what the model detects"},
		},
		"mismatch": {quantize.Comparison{Images: 4, Reference: 100, MatchRate: 0.94}, []string{
			fmt.Sprintf("match rate 0.9400 is under %.4f", quantize.DefaultMatchRate),
		}},
		"lost accuracy": {
			labelled(0.743, quantize.Loss{MAP: 0.419, Low: 0.4, High: 0.44}),
			[]string{"mAP50-95 fell by 0.4190 (95 % certain: 0.4000 to 0.4400) from 0.7430, more than 0.0100"},
		},
		"boxes differ, but not for the worse": {labelled(0.7, quantize.Loss{MAP: 0.01, Low: -0.001, High: 0.02}), nil},
		"better than the reference":           {labelled(0.7, quantize.Loss{MAP: -0.05, Low: -0.06, High: -0.04}), nil},
		"too few images": {
			labelled(0.7, quantize.Loss{MAP: 0.001, Low: -0.03, High: 0.031}),
			[]string{"mAP50-95 fell by 0.0010 (95 % certain: -0.0300 to 0.0310): with so few images it could be more than twice 0.0100, label more"},
		},
		"labels of others": {
			labelled(0.015, quantize.Loss{}),
			[]string{"the reference itself reaches mAP50-95 0.0150 only, are these the model's labels?"},
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
			require.NoError(t, gate.RunReference(ctx, comparer.run(t, quantize.Reference, e)))
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
	assert.EqualError(t, gate.RunReference(context.Background(), closed), "gate reference: engine is closed")
	gate.Samples = patches{}
	assert.EqualError(t, gate.RunReference(context.Background(), closed),
		"gate reference: quantize samples: no samples (name a directory with images)")
}
