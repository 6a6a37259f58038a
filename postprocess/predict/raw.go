package predict

import (
	"context"
	"errors"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
)

// Raw is a model that is run for its outputs as they are: nothing is filtered or decoded. It is for models that are no detectors, and for
// whoever measures the tensors inside of one. It takes one request at a time; a result is the engine's own, valid until the next request.
type Raw struct{ engine engine.Engine }

// OpenRaw opens a model as Open does, but for its decoder.
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

// WrapRaw makes one of an engine that is open already; Close closes it.
func WrapRaw(e engine.Engine) *Raw { return &Raw{e} }

// Model describes what runs.
func (r *Raw) Model() engine.Model { return r.engine.Model() }

// Engine gives the backend's own engine, for what only that backend tells.
func (r *Raw) Engine() engine.Engine { return auto.Unwrap(r.engine) }

// Images runs the model on 1 to Model().MaxBatch images, which are letterboxed and scaled as the model has it.
func (r *Raw) Images(images ...engine.Image) (*engine.Result, error) {
	if err := r.engine.Submit(0, images); err != nil {
		return nil, err
	}
	return r.engine.Wait(0)
}

// Tensors runs the model on tensors as they are, for models whose inputs are not one image.
func (r *Raw) Tensors(inputs ...engine.Tensor) (*engine.Result, error) {
	if err := r.engine.SubmitTensors(0, inputs); err != nil {
		return nil, err
	}
	return r.engine.Wait(0)
}

// Close closes the engine. It is idempotent.
func (r *Raw) Close() error { return r.engine.Close() }
