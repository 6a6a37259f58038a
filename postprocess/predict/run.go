package predict

import "github.com/edge-infer/edge-infer/engine"

// Run takes any number of pictures through a predictor, at most Model().MaxBatch at a time, and answers when all are done: one Picture for
// each, in their order, which the caller owns. The error says why a whole request failed, or is the Contradiction; there are no pictures
// then. Nothing else may submit to the predictor meanwhile.
func Run(p Predictor, pictures ...engine.Image) ([]Picture, error) {
	relay := Relay{Predictor: p}
	if err := relay.Submit(pictures); err != nil {
		return nil, err
	}
	all := make([]Picture, 0, len(pictures))
	result, err := relay.Wait(func(_ int, seen *Picture) { all = append(all, seen.Clone()) })
	if err == nil && result.Contradiction != nil {
		err = result.Contradiction
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}
