// Package onnxruntime runs ONNX models with ONNX Runtime, on the CPU or through its CUDA provider. The library is loaded when the first
// engine opens and unloaded when the last one closes; programs do not need it to start.
package onnxruntime

import (
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/worker"
)

const backend = "onnxruntime"

// Engine is a model in ONNX Runtime. Every slot has a worker goroutine that letterboxes its images and runs the network. Slots letterbox
// in parallel; networks run one at a time.
type Engine struct {
	// Set by Open.
	model        engine.Model
	img          *engine.ImageInput // nil when there is none
	deviceMemory bool               // the provider copies inputs to a device, so they must be bound for each run
	loaded       bool
	session      *ort.DynamicAdvancedSession
	exposed      exposed
	slots        []*slot
	inference    chan struct{} // held by the slot whose network runs
	memory       engine.Memory
	requests     worker.Slots

	closing  sync.Once
	closeErr error
}

var _ engine.Engine = (*Engine)(nil)

// Open loads the ONNX file in options.Bytes. External data is searched in the directory of options.Path. All errors are *engine.Error.
//
// Threads defaults to the number of CPUs. Unless options.Spin is set, waiting threads sleep and leave the CPUs to capture and publishing.
func Open(options engine.Options) (engine.Engine, error) {
	e := &Engine{inference: make(chan struct{}, 1)}
	if err := e.open(options); err != nil {
		_ = e.Close() // the first error matters
		return nil, e.fail("open", err)
	}
	return e, nil
}

// Model implements engine.Engine.
func (e *Engine) Model() engine.Model { return e.model }

// Slots implements engine.Engine.
func (e *Engine) Slots() int { return e.requests.Len() }

// Alloc implements engine.Engine.
func (e *Engine) Alloc(size int) (*engine.Buffer, error) {
	buffer, err := e.memory.Alloc(size)
	if err != nil {
		return nil, e.fail("alloc", err)
	}
	return buffer, nil
}

// Submit implements engine.Engine. It returns at once; the slot's worker letterboxes the images.
func (e *Engine) Submit(slot int, images []engine.Image) error {
	return e.requests.Submit(slot, images)
}

// SubmitTensors implements engine.Engine. The tensors are copied into the slot's memory by its worker.
func (e *Engine) SubmitTensors(slot int, inputs []engine.Tensor) error {
	return e.requests.SubmitTensors(slot, inputs)
}

// Wait implements engine.Engine.
func (e *Engine) Wait(slot int) (*engine.Result, error) { return e.requests.Wait(slot) }

// Close implements engine.Engine.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.requests.End()
		e.requests.Finish()
		for _, s := range e.slots {
			s.forget(nil)
		}
		if e.session != nil {
			_ = e.session.Destroy() // always nil
		}
		e.memory.Close()
		if e.loaded {
			e.closeErr = release()
		}
	})
	return e.closeErr
}

// fail makes err an *engine.Error of this backend.
func (e *Engine) fail(op string, err error) error {
	return engine.Attribute(err, op, backend, func(err error) string { return oneLine(err.Error()) })
}
