package accuracy

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// A verdict counts for that very file.
func TestVerdictOn(t *testing.T) {
	half := filepath.Join(t.TempDir(), "half.onnx")
	file := []byte("a model")
	require.NoError(t, os.WriteFile(half, file, 0o600))
	saved := &quantize.Verdict{Passed: true}
	saved.SetModel(file, engine.FP16)
	require.NoError(t, SaveVerdict(saved, half))
	v, err := VerdictOn(engine.Model{Path: half})
	require.NoError(t, err)
	assert.Equal(t, engine.FP16, v.Precision)
	none, err := VerdictOn(engine.Model{Path: predict.Demo})
	require.NoError(t, err)
	assert.Nil(t, none)
	// A plan of a cache counts instead of the model.
	model := engine.Model{Path: "elsewhere.onnx", Plan: half}
	v, err = VerdictOn(model)
	require.NoError(t, err)
	assert.NotNil(t, v)

	require.NoError(t, os.WriteFile(half, append(file, 0), 0o600))
	_, err = VerdictOn(model)
	assert.ErrorContains(t, err, half+".verdict.json is about another file (judge this one with edge-infer validate --gate)")
	require.NoError(t, os.WriteFile(half+VerdictSuffix, []byte("{"), 0o600))
	_, err = VerdictOn(model)
	assert.ErrorContains(t, err, "unexpected end of JSON input")
	// A file without the gate has no verdict, not that of an earlier one.
	require.NoError(t, SaveVerdict(nil, half))
	require.NoError(t, SaveVerdict(nil, half))
	assert.NoFileExists(t, half+VerdictSuffix)
}

func TestSummary(t *testing.T) {
	v := &quantize.Verdict{
		Passed: true, Precision: engine.FP16, Time: time.Date(2026, 11, 21, 5, 6, 7, 0, time.UTC),
		Comparison: quantize.Comparison{Images: 1000, Reference: 6955, Flipped: 5, MatchRate: 0.99213},
		Refused:    []quantize.Refusal{{Precision: engine.INT8, Reasons: []string{"match rate 0.4 is under 0.98", "mAP50-95 fell"}}},
	}
	assert.Equal(t, "fp16: 0.9921 of 6955 boxes as in FP32, on 1000 images, 2026-11-21; "+
		"int8 refused: match rate 0.4 is under 0.98, mAP50-95 fell", Summary(v))
	v.Comparison.ReferenceAccuracy, v.Comparison.CandidateAccuracy = &quantize.Accuracy{MAP50: 0.9, MAP: 0.8}, &quantize.Accuracy{
		MAP50: 0.85, MAP: 0.79,
	}
	assert.Contains(t, Summary(v), ", mAP50-95 0.7900 of 0.8000, on")
}

func TestTextNamesTheAccuracy(t *testing.T) {
	v := &quantize.Verdict{Passed: true, Comparison: quantize.Comparison{
		Images: 2, Reference: 30, MatchRate: 0.99,
		ReferenceAccuracy: &quantize.Accuracy{MAP50: 0.9, MAP: 0.8}, CandidateAccuracy: &quantize.Accuracy{MAP50: 0.8, MAP: 0.7},
	}}
	assert.Equal(t, "passed; match rate 0.9900 of 30 boxes in 2 images, 0 flipped class, score drift mean 0.0000 max 0.0000; "+
		"mAP50 0.8000 of 0.9000, mAP50-95 0.7000 of 0.8000", Text(v))
	v.Passed, v.Reasons = false, []string{"this", "that"}
	assert.Regexp(t, "^refused: this, that; match rate", Text(v))
}
