// Package worker implements the slots of backends that run each request in a goroutine per slot: the order of Submit and Wait that
// engine.Engine promises, and the checks of submitted data.
package worker

import (
	"fmt"
	"slices"
	"sync"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/clock"
)

// Slot holds a request in flight and its result. A backend embeds it in its own slot type. Submit writes Images, Tensors and Submitted
// before work starts; work owns Result until Wait, then the caller until the next Submit.
type Slot struct {
	Images    []engine.Image  // empty for SubmitTensors
	Tensors   []engine.Tensor // in the model's order
	Submitted int64           // CLOCK_MONOTONIC, ns
	Result    engine.Result

	busy  bool          // guarded by Slots.mu
	start chan struct{} // Submit to work; closed by End
	done  chan struct{} // work to Wait; one element, so that the work never blocks
	err   error         // written by work before done
}

// Slots are the slots of an engine. The zero value has none.
type Slots struct {
	// Backend, Model and Fail are set before Start. Fail converts an error to one of the backend.
	Backend string
	Model   *engine.Model
	Fail    func(op string, err error) error

	list  []*Slot
	group sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// Start adds a slot and a goroutine that runs work for each of its requests until End.
func (s *Slots) Start(slot *Slot, work func() error) {
	slot.Images, slot.Tensors = make([]engine.Image, 0, s.Model.MaxBatch), make([]engine.Tensor, len(s.Model.Inputs))
	slot.start, slot.done = make(chan struct{}, 1), make(chan struct{}, 1)
	s.list = append(s.list, slot)
	s.group.Go(func() {
		for range slot.start {
			slot.err = work()
			slot.done <- struct{}{}
		}
	})
}

// Len returns the number of slots.
func (s *Slots) Len() int { return len(s.list) }

// Submit implements engine.Engine.
func (s *Slots) Submit(number int, images []engine.Image) error {
	const op = "submit"
	if err := s.Model.RefusesImages(op); err != nil {
		return err
	}
	if len(images) < 1 || len(images) > s.Model.MaxBatch {
		return s.refuse(op, engine.ErrShape, "%d images, 1 to %d fit", len(images), s.Model.MaxBatch)
	}
	for i := range images {
		if err := images[i].Check(); err != nil {
			return s.Fail(op, err)
		}
	}
	return s.submit(op, number, images, nil)
}

// SubmitTensors implements engine.Engine.
func (s *Slots) SubmitTensors(number int, inputs []engine.Tensor) error {
	const op = "submit"
	if err := engine.CheckTensors(s.Model.Inputs, inputs); err != nil {
		return s.Fail(op, err)
	}
	return s.submit(op, number, nil, inputs)
}

// submit fills a free slot and wakes its goroutine.
func (s *Slots) submit(op string, number int, images []engine.Image, inputs []engine.Tensor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, err := s.slot(op, number)
	if err != nil {
		return err
	}
	if slot.busy {
		return s.refuse(op, nil, "slot %d has a request in flight, wait for it first", number)
	}
	slot.busy, slot.Submitted, slot.Images = true, clock.Monotonic(), append(slot.Images[:0], images...)
	if len(images) == 0 {
		for i, info := range s.Model.Inputs {
			slot.Tensors[i] = inputs[slices.IndexFunc(inputs, func(t engine.Tensor) bool { return t.Name == info.Name })]
		}
	}
	slot.start <- struct{}{}
	return nil
}

// slot returns a slot unless End was called; mu is held.
func (s *Slots) slot(op string, number int) (*Slot, error) {
	if s.closed {
		return nil, s.refuse(op, engine.ErrClosed, "the engine is closed")
	}
	if number < 0 || number >= len(s.list) {
		return nil, s.refuse(op, engine.ErrShape, "slot %d, there are slots 0 to %d", number, len(s.list)-1)
	}
	return s.list[number], nil
}

// Wait implements engine.Engine.
func (s *Slots) Wait(number int) (*engine.Result, error) {
	const op = "wait"
	s.mu.Lock()
	slot, err := s.slot(op, number)
	if err == nil && !slot.busy {
		err = s.refuse(op, nil, "slot %d has no request in flight, submit one first", number)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	<-slot.done
	s.mu.Lock()
	defer s.mu.Unlock()
	slot.busy = false
	if s.closed {
		return nil, s.refuse(op, engine.ErrClosed, "the engine is closed")
	}
	if slot.err != nil {
		return nil, slot.err
	}
	return &slot.Result, nil
}

// End rejects further requests. Requests in flight are completed; Finish waits for them. It must be called once.
func (s *Slots) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, slot := range s.list {
		close(slot.start)
	}
}

// Finish waits until all goroutines have ended.
func (s *Slots) Finish() { s.group.Wait() }

func (s *Slots) refuse(op string, kind error, format string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: s.Backend, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}
