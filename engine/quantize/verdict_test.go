package quantize_test

import (
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

func TestVerdict(t *testing.T) {
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
			v, err := quantize.NewVerdict(test.comparison, 0, 0, patches{count: 4}, []string{"patch 2"})
			require.NoError(t, err)
			assert.Equal(t, test.want, v.Reasons)
			assert.Equal(t, len(test.want) == 0, v.Passed)
			assert.Equal(t, []string{"patch 2"}, v.Skipped)

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

func TestEachReportsErrors(t *testing.T) {
	closed := func(int, quantize.Sample) error { return errors.New("engine is closed") }
	_, err := quantize.Each(patches{count: 1}, closed)
	assert.EqualError(t, err, "engine is closed")
	_, err = quantize.Each(patches{}, closed)
	assert.EqualError(t, err, "quantize samples: no samples (name a directory with images)")
	seen := 0
	skipped, err := quantize.Each(patches{count: 4, unreadable: map[int]bool{2: true}}, func(int, quantize.Sample) error {
		seen++
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"patch 2"}, skipped)
	assert.Equal(t, 3, seen)
}
