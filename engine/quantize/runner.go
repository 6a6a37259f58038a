package quantize

import "github.com/edge-infer/edge-infer/engine"

// Runner is an open model that returns all of its outputs, one request at a time; package predict implements it. It preprocesses images as
// for inference. A result is valid until the next request.
type Runner interface {
	Model() engine.Model
	Images(images ...engine.Image) (*engine.Result, error)
	Tensors(inputs ...engine.Tensor) (*engine.Result, error)
	Close() error
}

// run runs one sample.
func run(r Runner, s Sample) (*engine.Result, error) {
	if len(s.Tensors) > 0 {
		return r.Tensors(s.Tensors...)
	}
	return r.Images(s.Image)
}
