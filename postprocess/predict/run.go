package predict

import "github.com/edge-infer/edge-infer/engine"

// Run runs a predictor on any number of images, at most Model().MaxBatch at a time, and returns their results in the same order, which the
// caller owns. The error is that of a whole request, or the Contradiction; there are no results then. Nothing else may submit to the
// predictor meanwhile.
func Run(p Predictor, images ...engine.Image) ([]Result, error) {
	batcher := Batcher{Predictor: p}
	if err := batcher.Submit(images); err != nil {
		return nil, err
	}
	all := make([]Result, 0, len(images))
	result, err := batcher.Wait(func(_ int, one *Result) { all = append(all, one.Clone()) })
	if err == nil && result.Contradiction != nil {
		err = result.Contradiction
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}
