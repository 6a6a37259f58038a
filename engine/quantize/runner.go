package quantize

import "github.com/edge-infer/edge-infer/engine"

// Runner is a model that is open and gives all of its outputs, one request at a time: postprocess/predict has one. It letterboxes and
// scales images as in service. A result is valid until the next request.
type Runner interface {
	Model() engine.Model
	Images(images ...engine.Image) (*engine.Result, error)
	Tensors(inputs ...engine.Tensor) (*engine.Result, error)
	Close() error
}

// run runs a sample by itself.
func run(r Runner, s Sample) (*engine.Result, error) {
	if len(s.Tensors) > 0 {
		return r.Tensors(s.Tensors...)
	}
	return r.Images(s.Image)
}
