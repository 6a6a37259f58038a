package predict

import (
	"context"
	"errors"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
)

// Raw runs a model without filtering or decoding its outputs: models with other inputs or outputs than images and detections, and those
// whose tensors are measured. It runs one request at a time; a result belongs to the engine and is valid until the next request.
type Raw struct{ engine engine.Engine }

// OpenRaw opens a model as Open does, without a decoder.
func OpenRaw(ctx context.Context, o Options) (*Raw, error) {
	if err := o.Load(); err != nil {
		return nil, err
	}
	o.Filter = nil
	e, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.checkSize(e.Model()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return WrapRaw(e), nil
}

// WrapRaw returns the Raw of an open engine; Close closes it.
func WrapRaw(e engine.Engine) *Raw { return &Raw{e} }

// Model returns the description of the model.
func (r *Raw) Model() engine.Model { return r.engine.Model() }

// Engine returns the backend's own engine, for features of that backend.
func (r *Raw) Engine() engine.Engine { return auto.Unwrap(r.engine) }

// Images runs the model on 1 to Model().MaxBatch images, with the model's preprocessing.
func (r *Raw) Images(images ...engine.Image) (*engine.Result, error) {
	if err := r.engine.Submit(0, images); err != nil {
		return nil, err
	}
	return r.engine.Wait(0)
}

// Tensors runs the model on its input tensors.
func (r *Raw) Tensors(inputs ...engine.Tensor) (*engine.Result, error) {
	if err := r.engine.SubmitTensors(0, inputs); err != nil {
		return nil, err
	}
	return r.engine.Wait(0)
}

// Close closes the engine. It is idempotent.
func (r *Raw) Close() error { return r.engine.Close() }
