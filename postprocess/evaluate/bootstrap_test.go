package evaluate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/postprocess"
)

// simulated are images with objects of three classes, a crowd now and then, and detections that miss some and invent some.
type simulated struct {
	truths     []Truth
	detections []postprocess.Detection
}

func simulate(images int, seed uint64, missed float64) (all []simulated) {
	scenes, faults := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	for range images {
		var s simulated
		for i := range 1 + scenes.IntN(6) {
			x, y := 100*float32(i), 100*scenes.Float32()
			truth := Truth{
				Box:   postprocess.Box{X1: x, Y1: y, X2: x + 50, Y2: y + 50},
				Class: scenes.IntN(3), Crowd: scenes.IntN(20) == 0,
			}
			s.truths = append(s.truths, truth)
			shift, score := 15*scenes.Float32(), scenes.Float32()
			if faults.Float64() < missed {
				continue
			}
			found := postprocess.Detection{Box: truth.Box, Class: truth.Class, Score: score}
			found.X1, found.X2 = found.X1+shift, found.X2+shift
			s.detections = append(s.detections, found)
			if scenes.IntN(4) == 0 {
				found.Y1, found.Y2, found.Score = found.Y1+200, found.Y2+200, found.Score*0.9
				s.detections = append(s.detections, found)
			}
		}
		all = append(all, s)
	}
	return all
}

func accuracyOf(all []simulated, weights []uint16) *Accuracy {
	a := new(Accuracy)
	for i := range all {
		times := uint16(1)
		if weights != nil {
			times = weights[i]
		}
		for range times {
			a.Add(all[i].truths, all[i].detections)
		}
	}
	return a
}

// A resample weighs images instead of adding them again, with the same result.
func TestWeightedAccuracyEqualsRepeatedImages(t *testing.T) {
	all := simulate(30, 3, 0.2)
	a := accuracyOf(all, nil)
	a.sort()
	weights := make([]uint16, len(all))
	var scratch curves
	for seed := range uint64(20) {
		draw(weights, rand.New(rand.NewPCG(seed, 0)))
		assert.InDelta(t, accuracyOf(all, weights).Result().MAP, a.weighted(weights, &scratch), 1e-12)
	}
	for i := range weights {
		weights[i] = 1
	}
	assert.InDelta(t, a.Result().MAP, a.weighted(weights, &scratch), 1e-12)
	assert.Zero(t, new(Accuracy).weighted(nil, &scratch))
}

// The interval is the same every time, holds nothing but 0 for the same detections, and narrows with the images.
func TestLossInterval(t *testing.T) {
	good, bad := accuracyOf(simulate(60, 5, 0.05), nil), accuracyOf(simulate(60, 5, 0.3), nil)
	assert.Equal(t, Interval{}, LossInterval(good, good, 100, 1))
	assert.Equal(t, Interval{}, LossInterval(good, bad, 0, 1))
	found := LossInterval(good, bad, 400, 1)
	assert.Equal(t, found, LossInterval(good, bad, 400, 1))
	assert.NotEqual(t, found, LossInterval(good, bad, 400, 2))
	loss := good.Result().MAP - bad.Result().MAP
	assert.Greater(t, found.Low, 0.0)
	assert.Less(t, found.Low, loss)
	assert.Greater(t, found.High, loss)
	opposite := LossInterval(bad, good, 400, 1)
	assert.Less(t, opposite.High, 0.0)
	more := LossInterval(accuracyOf(simulate(600, 5, 0.05), nil), accuracyOf(simulate(600, 5, 0.3), nil), 400, 1)
	assert.Less(t, more.High-more.Low, 0.5*(found.High-found.Low))
}

// The interval contains the true loss in about 95 % of the cases.
func TestLossIntervalCoverage(t *testing.T) {
	large := 4000
	truth := accuracyOf(simulate(large, 1000, 0.05), nil).Result().MAP - accuracyOf(simulate(large, 1000, 0.25), nil).Result().MAP
	const trials = 60
	held := 0
	for seed := range uint64(trials) {
		found := LossInterval(accuracyOf(simulate(60, 10+seed, 0.05), nil), accuracyOf(simulate(60, 10+seed, 0.25), nil), 200, 1)
		if found.Low <= truth && truth <= found.High {
			held++
		}
	}
	assert.GreaterOrEqual(t, held, trials*85/100, "of %d, the truth being %.4f", trials, truth)
}

func BenchmarkLossInterval(b *testing.B) {
	all := simulate(5000, 7, 0.1)
	for i := range all {
		all[i].detections = slices.Repeat(all[i].detections, 40)
	}
	from, to := accuracyOf(all, nil), accuracyOf(all, nil)
	for b.Loop() {
		LossInterval(from, to, 100, 1)
	}
}
