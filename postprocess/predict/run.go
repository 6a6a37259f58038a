package predict

import (
	"errors"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// Run takes any number of pictures through a predictor, at most Model().MaxBatch at a time, and answers when all are done: one Picture for
// each, in their order, which the caller owns. The error says why a whole request failed, or is the Contradiction; there are no pictures
// then. Nothing else may submit to the predictor meanwhile.
func Run(p Predictor, pictures ...engine.Image) ([]Picture, error) {
	batch, slots := p.Model().MaxBatch, p.Slots()
	all := make([]Picture, 0, len(pictures))
	var failed []error
	oldest, busy := 0, 0
	for next := 0; next < len(pictures) && failed == nil || busy > 0; {
		if next < len(pictures) && failed == nil && busy < slots {
			end := min(next+batch, len(pictures))
			if err := p.Submit((oldest+busy)%slots, pictures[next:end]); err != nil {
				failed = append(failed, err)
				continue
			}
			next, busy = end, busy+1
			continue
		}
		result, err := p.Wait(oldest)
		oldest, busy = (oldest+1)%slots, busy-1
		if err == nil && result.Contradiction != nil {
			err = result.Contradiction
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, picture := range result.Pictures {
			picture.Findings = slices.Clone(picture.Findings)
			for i := range picture.Findings {
				picture.Findings[i] = picture.Findings[i].Clone()
			}
			all = append(all, picture)
		}
	}
	if failed != nil {
		return nil, errors.Join(failed...)
	}
	return all, nil
}

// Tensors runs a model once on tensors as they are, for models whose inputs are not one picture; OpenEngine opens such a model. The result
// is the engine's own, valid until the next request of its first slot, which must be free.
func Tensors(e engine.Engine, inputs []engine.Tensor) (*engine.Result, error) {
	if err := e.SubmitTensors(0, inputs); err != nil {
		return nil, err
	}
	return e.Wait(0)
}
