package evaluate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/postprocess"
)

func TestMapAgreementOfClassesByHand(t *testing.T) {
	reference := &postprocess.DenseMap{Width: 4, Height: 1, StepX: 1, StepY: 1, Classes: []uint8{0, 1, 1, postprocess.NoClass}}
	// Half as fine: both of a pair of pixels have the class of their cell.
	candidate := &postprocess.DenseMap{Width: 2, Height: 1, StepX: .5, StepY: 1, X: -.25, Classes: []uint8{0, 1}}
	a := MapAgreement{Classes: 2}
	a.Add(candidate, reference, 4, 1)
	a.Add(reference, reference, 4, 1)
	a.Add(reference, nil, 4, 1)
	r := a.Result()
	assert.Equal(t, 2, r.Images)
	assert.InDelta(t, 5./6, r.Same, 1e-9, "what the reference has no class for does not count")
	assert.InDelta(t, 2./3, r.SameMin, 1e-9)
	assert.InDelta(t, (2./3+3./4)/2, r.MeanIoU, 1e-9)
	a = MapAgreement{Classes: 2}
	a.Add(nil, reference, 4, 1)
	assert.Zero(t, a.Result().Same)
	assert.Equal(t, MapAgreementResult{}, new(MapAgreement).Result())
}

func TestMapAgreementOfDepthsByHand(t *testing.T) {
	nan := float32(math.NaN())
	of := func(depths ...float32) *postprocess.DenseMap {
		return &postprocess.DenseMap{Width: len(depths), Height: 1, StepX: 1, StepY: 1, Depths: depths}
	}
	var a MapAgreement
	a.Add(of(1, 3, -5, 2), of(1, 2, -4, 2), 4, 1)
	r := a.Result()
	assert.InDelta(t, 2./4, r.MeanError, 1e-9)
	assert.InDelta(t, 1, r.MaxError, 1e-9)
	assert.InDelta(t, 2./9, r.Relative, 1e-9)
	assert.InDelta(t, .5, r.Delta125, 1e-9)
	assert.Zero(t, r.Missing)
	a = MapAgreement{}
	a.Add(of(1, 1, 1, nan), of(1, 1, 1, 1), 4, 1) // beside what is none nothing can be said between cells either
	a.Add(of(1, 1), of(nan, nan), 2, 1)
	a.Add(nil, of(1, 1, 1, 1), 4, 1)
	r = a.Result()
	assert.InDelta(t, 3./4, r.Missing, 1e-9)
	assert.InDelta(t, 1./4, r.Delta125, 1e-9)
	assert.Zero(t, r.MeanError)
}
