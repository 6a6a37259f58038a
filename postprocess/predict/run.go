package predict

import "github.com/edge-infer/edge-infer/engine"

// Run takes any number of images through a predictor, at most Model().MaxBatch at a time, and answers when all are done: one Image for
// each, in their order, which the caller owns. The error says why a whole request failed, or is the Contradiction; there are no images
// then. Nothing else may submit to the predictor meanwhile.
func Run(p Predictor, images ...engine.Image) ([]Result, error) {
	relay := Batcher{Predictor: p}
	if err := relay.Submit(images); err != nil {
		return nil, err
	}
	all := make([]Result, 0, len(images))
	result, err := relay.Wait(func(_ int, seen *Result) { all = append(all, seen.Clone()) })
	if err == nil && result.Contradiction != nil {
		err = result.Contradiction
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}
