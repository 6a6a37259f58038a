package onnxruntime

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/preprocess"
	"github.com/edge-infer/edge-infer/engine/worker"
	"github.com/edge-infer/edge-infer/internal/clock"
)

// slot holds one request in flight: its memory, its worker and its result.
type slot struct {
	engine *Engine

	worker.Slot

	// The worker's.
	images   preprocess.Batch
	inputs   []*engine.Buffer
	outputs  []*engine.Buffer
	requests []*request
	dims     []int64
}

// work runs the slot's request. The worker goroutine calls it.
func (s *slot) work() error {
	e := s.engine
	began := clock.Monotonic()
	s.Result.Transforms = s.Result.Transforms[:0]
	s.Result.Outputs = nil
	s.dims = s.dims[:0]
	if len(s.Images) > 0 {
		if err := s.preprocess(); err != nil {
			return err
		}
	} else if err := s.copyTensors(); err != nil {
		return err
	}
	r, err := s.request(s.dims)
	if err != nil {
		return e.fail("submit", err)
	}
	prepared := clock.Monotonic()
	// Networks run one at a time, in the order of arrival, since they use the same threads. Other slots letterbox meanwhile.
	e.inference <- struct{}{}
	ready := clock.Monotonic()
	err = s.run(r)
	done := clock.Monotonic()
	<-e.inference
	if err != nil {
		return e.fail("wait", err)
	}
	s.Result.Outputs = r.views
	s.Result.Timing = engine.Timing{Submitted: s.Submitted, Done: done, Preprocess: prepared - began, Inference: done - ready}
	return nil
}

// preprocess letterboxes the images into the batch positions of the input.
func (s *slot) preprocess() error {
	batch, transforms, err := s.images.Run(s.Images, s.inputs[0].Data, s.Result.Transforms)
	if err != nil {
		return err
	}
	s.Result.Transforms, s.dims = transforms, append(s.dims, s.engine.img.Shape(batch)...)
	return nil
}

// copyTensors copies the submitted tensors to the slot's input memory, which grows if needed.
func (s *slot) copyTensors() error {
	s.images.Forget()
	for i := range s.Tensors {
		if err := s.inputMemory(i, len(s.Tensors[i].Data)); err != nil {
			return err
		}
		copy(s.inputs[i].Data, s.Tensors[i].Data)
		s.dims = append(s.dims, s.Tensors[i].Shape...)
	}
	return nil
}

// inputMemory ensures the size of an input's memory in bytes. Requests bound to replaced memory are dropped.
func (s *slot) inputMemory(i, size int) error { return s.grow(&s.inputs[i], size, nil) }

// outputMemory ensures the size of an output's memory for r; if the output has a row per image, for the largest batch.
func (s *slot) outputMemory(r *request, i int, shape []int64) error {
	need := size(s.engine.model.Outputs[i].Type, shape)
	if s.engine.img != nil && len(shape) > 0 && shape[0] == r.dims[0] {
		batch := int(r.dims[0])
		need = need / batch * max(s.engine.model.MaxBatch, batch)
	}
	return s.grow(&s.outputs[i], need, r)
}

// grow replaces a buffer that is too small and drops all requests except r, which does not use it yet.
func (s *slot) grow(buffer **engine.Buffer, size int, r *request) error {
	if *buffer != nil && len((*buffer).Data) >= size {
		return nil
	}
	larger, err := s.engine.memory.Alloc(size)
	if err != nil {
		return err
	}
	s.forget(r)
	(*buffer).Free()
	*buffer = larger
	return nil
}

// forget destroys all requests except keep, which may be nil.
func (s *slot) forget(keep *request) {
	s.requests = slices.DeleteFunc(s.requests, func(r *request) bool {
		if r != keep {
			r.destroy()
		}
		return r != keep
	})
}
