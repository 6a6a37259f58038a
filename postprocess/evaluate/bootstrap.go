package evaluate

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// Interval is a 95 % confidence interval, provided that the images are a random sample.
type Interval struct{ Low, High float64 }

const certainty = 0.95

// LossInterval is the confidence interval of the loss of mAP50-95 between two accuracies over the same images in the same order: the
// percentile bootstrap over images (Efron, 1979). Each resample draws the same images with replacement for both sides, so that the
// difficulty of an image cancels out. The result is deterministic for a seed.
func LossInterval(from, to *Accuracy, resamples int, seed uint64) Interval {
	from.sort()
	to.sort()
	losses := make([]float64, resamples)
	workers := min(runtime.GOMAXPROCS(0), resamples)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			weights := make([]uint16, from.images)
			var scratch curves
			for i := worker; i < resamples; i += workers {
				draw(weights, rand.New(rand.NewPCG(seed, uint64(i))))
				losses[i] = from.weighted(weights, &scratch) - to.weighted(weights, &scratch)
			}
		})
	}
	all.Wait()
	slices.Sort(losses)
	if resamples == 0 {
		return Interval{}
	}
	at := func(share float64) float64 { return losses[min(int(share*float64(resamples)), resamples-1)] }
	return Interval{at((1 - certainty) / 2), at((1 + certainty) / 2)}
}

// draw counts how often each image is drawn.
func draw(weights []uint16, random *rand.Rand) {
	clear(weights)
	for range weights {
		weights[random.IntN(len(weights))]++
	}
}

// weighted returns mAP50-95 with a multiplicity per image.
func (a *Accuracy) weighted(weights []uint16, scratch *curves) float64 {
	sum, classes := 0.0, 0
	for class := range a.classes {
		if averages, measured := a.classes[class].averagePrecisions(weights, scratch); measured {
			sum += mean(averages)
			classes++
		}
	}
	return sum / float64(max(classes, 1))
}
