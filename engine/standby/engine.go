// Package standby is an engine of two: one that runs on other machines, and one here that takes over while those do not answer.
package standby

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// Remote is an engine that may be away. Its Submit never waits, and its Wait ends within a bounded time.
type Remote interface {
	engine.Engine
	// Well reports whether a request would go anywhere.
	Well() bool
}

// Options say what stands by for what.
type Options struct {
	// Remote is used whenever it is well; nil when it could not be opened, for the reason Refused. Then Reopen is tried until it works.
	Remote  Remote
	Refused error
	Reopen  func(ctx context.Context) (Remote, error)
	// Local runs the same model. Both belong to the engine from Open on.
	Local engine.Engine
	Log   *slog.Logger
}

// Engine runs requests on Remote while it is well, and on Local otherwise. A request that Remote fails is done again by Local, so none is
// lost.
type Engine struct {
	Options
	model  engine.Model
	remote atomic.Pointer[Remote]
	slots  []slot
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	status Status
}

// Status is which of the two works.
type Status struct {
	Local    bool      `json:"local"`            // the last request was done here
	Since    time.Time `json:"since,omitzero"`   // the last change between the two
	Reason   string    `json:"reason,omitempty"` // of the last request that was done here
	Requests uint64    `json:"requests"`         // done here
	Changes  uint64    `json:"changes"`          // from there to here
}

// slot is where a request is. One goroutine at a time uses it.
type slot struct {
	images  []engine.Image
	tensors []engine.Tensor
	remote  Remote // that has it; nil when Local does
	busy    bool   // a request is in flight, wherever
}

const (
	firstReopen = time.Second
	lastReopen  = 30 * time.Second
)

// Open makes one engine of two. An error closes neither.
func Open(o Options) (*Engine, error) {
	e := &Engine{Options: o, model: o.Local.Model(), slots: make([]slot, o.Local.Slots())}
	local := e.model.Device
	if o.Remote != nil {
		if err := e.fits(o.Remote); err != nil {
			return nil, err
		}
		m := o.Remote.Model()
		e.model.Backend, e.model.BackendVersion, e.model.Device, e.model.Precision = m.Backend, m.BackendVersion, m.Device, m.Precision
		e.model.BlocksThread = m.BlocksThread
		e.remote.Store(&e.Options.Remote)
	}
	e.model.Reason = "servers were asked for, " + e.Local.Model().Backend + " stands by"
	e.model.Device += "; stands by: " + o.Local.Model().Backend + " on " + local
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	if o.Remote == nil {
		e.note(true, o.Refused)
		e.done.Go(func() { e.reopen(ctx) })
	}
	return e, nil
}

// fits reports a remote model that is not the local one.
func (e *Engine) fits(r Remote) error {
	here, there := e.Local.Model(), r.Model()
	same := func(a, b engine.TensorInfo) bool {
		return a.Name == b.Name && a.Type == b.Type &&
			slices.EqualFunc(a.Shape, b.Shape, func(a, b int64) bool { return a == b || a == -1 || b == -1 })
	}
	// An image may go there as something else than what the network here takes, as long as it has the same size.
	images := here.Image != nil && there.Image != nil && here.Image.Channels == there.Image.Channels &&
		here.Width == there.Width && here.Height == there.Height
	what := ""
	switch {
	case !images && !slices.EqualFunc(here.Inputs, there.Inputs, same):
		what = fmt.Sprintf("its inputs are %v, here %v", there.Inputs, here.Inputs)
	case !slices.EqualFunc(here.Outputs, there.Outputs, same):
		what = fmt.Sprintf("its outputs are %v, here %v", there.Outputs, here.Outputs)
	case here.MaxBatch != there.MaxBatch:
		what = fmt.Sprintf("it takes %d images, here %d", there.MaxBatch, here.MaxBatch)
	case len(here.Metadata.Labels) != len(there.Metadata.Labels):
		what = fmt.Sprintf("it has %d labels, here %d", len(there.Metadata.Labels), len(here.Metadata.Labels))
	default:
		return nil
	}
	return &engine.Error{
		Op: "open", Backend: there.Backend, Kind: engine.ErrShape, Message: "the servers' model is not the one that stands by: " + what,
		Hint: "name the file that the servers' model was made from with --model",
	}
}

// reopen tries for the remote engine until it is there.
func (e *Engine) reopen(ctx context.Context) {
	last := ""
	for pause := firstReopen; ; pause = min(2*pause, lastReopen) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		r, err := e.Reopen(ctx)
		if err == nil {
			if err = e.fits(r); err == nil {
				e.remote.Store(&r)
				e.Log.Info("servers are there", "device", r.Model().Device)
				return
			}
			err = errors.Join(err, r.Close())
		}
		if ctx.Err() == nil && err.Error() != last {
			last = err.Error()
			e.Log.Warn("servers are not used", "reason", err)
		}
	}
}

// note counts a request by where it was done.
func (e *Engine) note(local bool, reason error) {
	e.mu.Lock()
	changed := local != e.status.Local
	if local {
		e.status.Requests++
		if reason != nil {
			e.status.Reason = reason.Error()
		}
	}
	if changed {
		e.status.Local, e.status.Since = local, time.Now()
		if local {
			e.status.Changes++
		} else {
			e.status.Reason = ""
		}
	}
	e.mu.Unlock()
	switch {
	case changed && local:
		e.Log.Warn("the engine here takes over", "engine", e.Local.Model().Backend, "reason", reason)
	case changed:
		e.Log.Info("the engine here hands back")
	}
}

// Status says which of the two works.
func (e *Engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status
}

// Unwrap is the remote engine, nil while it could not be opened.
func (e *Engine) Unwrap() engine.Engine {
	if r := e.remote.Load(); r != nil {
		return *r
	}
	return nil
}

// Model implements engine.Engine: the local model's description, run by the remote backend.
func (e *Engine) Model() engine.Model { return e.model }

// Alloc implements engine.Engine: what the local engine reads without a copy.
func (e *Engine) Alloc(size int) (*engine.Buffer, error) { return e.Local.Alloc(size) }

// Slots implements engine.Engine.
func (e *Engine) Slots() int { return len(e.slots) }

// Submit implements engine.Engine.
func (e *Engine) Submit(number int, images []engine.Image) error {
	if number < 0 || number >= len(e.slots) {
		return e.Local.Submit(number, images) // which says it best
	}
	s := &e.slots[number]
	if s.busy {
		return e.inFlight(number)
	}
	s.images, s.tensors = append(s.images[:0], images...), s.tensors[:0]
	return e.submit(number, s)
}

// SubmitTensors implements engine.Engine.
func (e *Engine) SubmitTensors(number int, inputs []engine.Tensor) error {
	if number < 0 || number >= len(e.slots) {
		return e.Local.SubmitTensors(number, inputs)
	}
	s := &e.slots[number]
	if s.busy {
		return e.inFlight(number)
	}
	s.images, s.tensors = s.images[:0], append(s.tensors[:0], inputs...)
	return e.submit(number, s)
}

// inFlight refuses a second request: the other engine's slot would take it when the servers have gone in between.
func (e *Engine) inFlight(number int) error {
	return &engine.Error{
		Op: "submit", Backend: e.model.Backend, Message: fmt.Sprintf("slot %d has a request in flight, wait for it first", number),
	}
}

// on gives a request to one of the two.
func (s *slot) on(e engine.Engine, number int) error {
	if len(s.tensors) > 0 {
		return e.SubmitTensors(number, s.tensors)
	}
	return e.Submit(number, s.images)
}

func (e *Engine) submit(number int, s *slot) error {
	if r := e.remote.Load(); r != nil && (*r).Well() && number < (*r).Slots() && e.takes(*r, s) {
		err := s.on(*r, number)
		if err == nil {
			s.remote, s.busy = *r, true
		}
		return err
	}
	err := s.on(e.Local, number)
	s.remote, s.busy = nil, err == nil
	return err
}

// takes reports whether the request is one for the servers: tensors are the inputs of the network here.
func (e *Engine) takes(r Remote, s *slot) bool {
	return len(s.tensors) == 0 || engine.CheckTensors(r.Model().Inputs, s.tensors) == nil
}

// Wait implements engine.Engine.
func (e *Engine) Wait(number int) (*engine.Result, error) {
	if number < 0 || number >= len(e.slots) {
		return e.Local.Wait(number)
	}
	s := &e.slots[number]
	s.busy = false
	var reason error
	if r := s.remote; r != nil {
		s.remote = nil
		result, err := r.Wait(number)
		if err == nil {
			e.note(false, nil)
			return result, nil
		}
		if errors.Is(err, engine.ErrClosed) {
			return nil, err
		}
		reason = err
		if err := s.on(e.Local, number); err != nil {
			return nil, err
		}
	}
	result, err := e.Local.Wait(number)
	if err == nil {
		e.note(true, reason)
	}
	return result, err
}

// Close implements engine.Engine. It closes both.
func (e *Engine) Close() error {
	e.cancel()
	e.done.Wait()
	var err error
	if r := e.remote.Load(); r != nil {
		err = (*r).Close()
	}
	return errors.Join(err, e.Local.Close())
}
