package outputs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

func TestAccuracyStatus(t *testing.T) {
	when := time.Date(2026, 11, 21, 5, 6, 7, 0, time.UTC)
	v := &quantize.Verdict{
		Passed: true, Precision: engine.FP16, Time: when,
		Comparison: quantize.Comparison{Images: 1000, Reference: 6955, Flipped: 5, MatchRate: 0.99213},
		Refused:    []quantize.Refusal{{Precision: engine.INT8, Reasons: []string{"match rate 0.4 is under 0.98", "mAP50-95 fell"}}},
	}
	want := &payload.Accuracy{
		Precision: "fp16", Passed: true, MatchRate: 0.99213, Boxes: 6955, Flipped: 5, Images: 1000, Time: when,
		Refused: []payload.RefusedPrecision{{Precision: "int8", Reasons: []string{"match rate 0.4 is under 0.98", "mAP50-95 fell"}}},
	}
	assert.Equal(t, want, accuracyStatus(v))
	v.Comparison.ReferenceAccuracy, v.Comparison.CandidateAccuracy = &quantize.Accuracy{MAP50: 0.9, MAP: 0.8}, &quantize.Accuracy{
		MAP50: 0.85, MAP: 0.79,
	}
	want.Labelled, want.MAP50, want.MAP, want.ReferenceMAP50, want.ReferenceMAP = true, 0.85, 0.79, 0.9, 0.8
	assert.Equal(t, want, accuracyStatus(v))
	assert.Nil(t, accuracyStatus(nil))
}
