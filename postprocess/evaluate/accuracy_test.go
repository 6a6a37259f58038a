package evaluate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into))
}

func box(v []float64) postprocess.Box {
	return postprocess.Box{X1: float32(v[0]), Y1: float32(v[1]), X2: float32(v[2]), Y2: float32(v[3])}
}

func TestAccuracyEqualsPycocotools(t *testing.T) {
	var golden struct {
		Result struct {
			MAP50, MAP float64
			Classes    []struct {
				Class    int
				AP50, AP float64
			}
		}
		Images []struct{ Truths, Detections [][]float64 }
	}
	readJSON(t, "accuracy.json", &golden)
	var accuracy Accuracy
	for _, img := range golden.Images {
		var truths []Truth
		for _, v := range img.Truths {
			truths = append(truths, Truth{Box: box(v), Class: int(v[4]), Crowd: v[5] != 0})
		}
		var detections []postprocess.Detection
		for _, v := range img.Detections {
			detections = append(detections, postprocess.Detection{Box: box(v), Class: int(v[4]), Score: float32(v[5])})
		}
		accuracy.Add(truths, detections)
	}
	got := accuracy.Result()
	assert.InDelta(t, golden.Result.MAP50, got.MAP50, 1e-9)
	assert.InDelta(t, golden.Result.MAP, got.MAP, 1e-9)
	require.Len(t, got.Classes, len(golden.Result.Classes))
	for i, want := range golden.Result.Classes {
		assert.Equal(t, want.Class, got.Classes[i].Class)
		assert.InDelta(t, want.AP50, got.Classes[i].AP50, 1e-9)
		assert.InDelta(t, want.AP, got.Classes[i].AP, 1e-9)
	}
}

func TestCurve(t *testing.T) {
	var accuracy Accuracy
	truth := Truth{Box: postprocess.Box{X1: 0, Y1: 0, X2: 10, Y2: 10}}
	other := Truth{Box: postprocess.Box{X1: 50, Y1: 0, X2: 60, Y2: 10}}
	accuracy.Add([]Truth{truth, other}, []postprocess.Detection{
		{Box: truth.Box, Score: 0.9},
		{Box: postprocess.Box{X1: 200, Y1: 200, X2: 210, Y2: 210}, Score: 0.6},
		{Box: other.Box, Score: 0.6},
		{Box: other.Box, Score: 0.5},
	})
	result := accuracy.Result()
	require.Len(t, result.Classes, 1)
	curve := result.Classes[0].Curve
	assert.Equal(t, Curve{{0.9, 1, 0.5}, {0.6, 2.0 / 3, 1}, {0.5, 0.5, 1}}, curve)
	assert.Equal(t, CurvePoint{Score: 0.95}, curve.At(0.95), "nothing is that sure")
	assert.Equal(t, curve[0], curve.At(0.9))
	assert.Equal(t, curve[1], curve.At(0.55))
	assert.Equal(t, curve[2], curve.At(0))
	assert.Equal(t, Result{}, (&Accuracy{}).Result())
}

func TestAgreement(t *testing.T) {
	at := func(x float32, class int, score float32) postprocess.Detection {
		return postprocess.Detection{Box: postprocess.Box{X1: x, Y1: 0, X2: x + 10, Y2: 10}, Class: class, Score: score}
	}
	a := Agreement{MaxDrift: 0.1, Threshold: 0.25, Margin: 0.05}
	a.Add(
		[]postprocess.Detection{at(0, 0, 0.9), at(100, 1, 0.8), at(200, 2, 0.7), at(300, 3, 0.6), at(400, 0, 0.27)},
		[]postprocess.Detection{at(1, 0, 0.85), at(100, 2, 0.8), at(200, 2, 0.5), at(500, 3, 0.6), at(600, 0, 0.29)},
	)
	a.Add(nil, nil)
	got := a.Report()
	assert.InDelta(t, 0.2, got.MaxDrift, 1e-6)
	assert.InDelta(t, 0.125, got.MeanDrift, 1e-6)
	assert.InDelta(t, 9.0/11, got.MinIoU, 1e-6)
	assert.InDelta(t, (1+9.0/11)/2, got.MeanIoU, 1e-6)
	assert.InDelta(t, 2.0/8, got.MatchRate, 1e-9)
	got.MaxDrift, got.MeanDrift, got.MinIoU, got.MeanIoU, got.MatchRate = 0, 0, 0, 0, 0
	assert.Equal(t, AgreementReport{
		Images: 2, Reference: 5, Candidate: 5, Matched: 1, Drifted: 1, Flipped: 1, Missing: 1, Extra: 1, Excused: 2,
	}, got)

	empty := Agreement{}
	empty.Add(nil, nil)
	assert.InDelta(t, 1, empty.Report().MatchRate, 0)
}
