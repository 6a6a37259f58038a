package evaluate

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// Interval holds a figure with 95 % certainty, as far as the images are drawn at random from those that matter.
type Interval struct{ Low, High float64 }

const certainty = 0.95

// LossInterval is where the loss of mAP50-95 from one accuracy to another lies, which are of the same images in the same order: the
// percentile bootstrap over images (Efron, 1979). Each resample draws as many images as there are, with replacement, the same for both
// sides, so that what is hard in an image cancels out. The same accuracies, resamples and seed give the same interval.
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

// draw counts how often each of as many draws falls on an image.
func draw(weights []uint16, random *rand.Rand) {
	clear(weights)
	for range weights {
		weights[random.IntN(len(weights))]++
	}
}

// weighted is mAP50-95 with each image as often as its weight says.
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
