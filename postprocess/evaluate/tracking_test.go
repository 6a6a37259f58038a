package evaluate

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTrackingEqualsTrackEval(t *testing.T) {
	var golden struct {
		Result TrackingResult
		Frames []struct{ Truths, Tracks [][]float64 }
	}
	readJSON(t, "tracking.json", &golden)
	var tracking Tracking
	identified := func(rows [][]float64) (out []Identified) {
		for _, v := range rows {
			out = append(out, Identified{box(v), int64(v[4])})
		}
		return out
	}
	for _, frame := range golden.Frames {
		tracking.Add(identified(frame.Truths), identified(frame.Tracks))
	}
	got, want := tracking.Result(), golden.Result
	assert.InDelta(t, want.MOTA, got.MOTA, 1e-9)
	assert.InDelta(t, want.IDF1, got.IDF1, 1e-9)
	assert.InDelta(t, want.HOTA, got.HOTA, 1e-9)
	assert.InDelta(t, want.DetA, got.DetA, 1e-9)
	assert.InDelta(t, want.AssA, got.AssA, 1e-9)
	assert.Equal(t, want.IDSwitches, got.IDSwitches)
	assert.Equal(t, want.Missed, got.Missed)
	assert.Equal(t, want.FalseAlarms, got.FalseAlarms)
}

func TestTrackingOfNothing(t *testing.T) {
	var tracking Tracking
	assert.Equal(t, TrackingResult{}, tracking.Result())
	tracking.Add(nil, nil)
	assert.Equal(t, TrackingResult{Frames: 1}, tracking.Result())
}
