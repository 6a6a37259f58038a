// Package standby combines a remote engine with a local one that takes over while the servers do not answer.
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

// Remote is an engine that may be unavailable. Submit must not block and Wait must return within a bounded time.
type Remote interface {
	engine.Engine
	// Healthy reports whether any server accepts requests.
	Healthy() bool
	// Reject takes the server that gave a slot's last result out of service, because its values are invalid. It reports whether another one
	// accepts requests.
	Reject(slot int, reason error) (repeat bool)
}

// Options configures Open.
type Options struct {
	// Remote is used while it is healthy. It is nil if it could not be opened, with the reason in Refused; Reopen is then retried until it
	// succeeds.
	Remote  Remote
	Refused error
	Reopen  func(ctx context.Context) (Remote, error)
	// Local runs the same model. Open takes ownership of both engines.
	Local engine.Engine
	Log   *slog.Logger
}

// Engine runs requests on Remote while it is healthy and on Local otherwise. A request that fails on Remote is repeated on Local, so none
// is lost.
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

// Status reports which engine is in use.
type Status struct {
	Local    bool      `json:"local"`            // the last request ran locally
	Since    time.Time `json:"since,omitzero"`   // time of the last change
	Reason   string    `json:"reason,omitempty"` // why the last local request was not remote
	Requests uint64    `json:"requests"`         // run locally
	Changes  uint64    `json:"changes"`          // from remote to local
}

// slot is the state of one slot. One goroutine at a time uses it.
type slot struct {
	images  []engine.Image
	tensors []engine.Tensor
	remote  Remote // engine of the request; nil for Local
	last    Remote // engine of the last result; nil for Local
	busy    bool   // a request is in flight
}

const (
	firstReopen = time.Second
	lastReopen  = 30 * time.Second
)

// Open combines both engines. After an error the caller still owns them.
func Open(o Options) (*Engine, error) {
	e := &Engine{Options: o, model: o.Local.Model(), slots: make([]slot, o.Local.Slots())}
	local := e.model.Device
	if o.Remote != nil {
		if err := e.fits(o.Remote); err != nil {
			return nil, err
		}
		m := o.Remote.Model()
		e.model.Backend = m.Backend
		e.model.BackendVersion = m.BackendVersion
		e.model.Device = m.Device
		e.model.Precision = m.Precision
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

// fits returns an error if the remote model differs from the local one.
func (e *Engine) fits(r Remote) error {
	here, there := e.Local.Model(), r.Model()
	same := func(a, b engine.TensorInfo) bool {
		return a.Name == b.Name && a.Type == b.Type &&
			slices.EqualFunc(a.Shape, b.Shape, func(a, b int64) bool { return a == b || a == -1 || b == -1 })
	}
	// The encoding of images may differ as long as their size is the same.
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

// reopen retries opening the remote engine until it succeeds.
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

// note counts a request and where it ran.
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
		e.Log.Warn("local engine takes over from the inference server", "engine", e.Local.Model().Backend, "reason", reason)
	case changed:
		e.Log.Info("inference server in use again")
	}
}

// Status returns which engine is in use.
func (e *Engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status
}

// Unwrap returns the remote engine, or nil if it is not open yet.
func (e *Engine) Unwrap() engine.Engine {
	if r := e.remote.Load(); r != nil {
		return *r
	}
	return nil
}

// Model implements engine.Engine. It describes the local model, run by the remote backend.
func (e *Engine) Model() engine.Model { return e.model }

// Alloc implements engine.Engine with memory of the local engine.
func (e *Engine) Alloc(size int) (*engine.Buffer, error) { return e.Local.Alloc(size) }

// Slots implements engine.Engine.
func (e *Engine) Slots() int { return len(e.slots) }

// Submit implements engine.Engine.
func (e *Engine) Submit(number int, images []engine.Image) error {
	if number < 0 || number >= len(e.slots) {
		return e.Local.Submit(number, images) // which returns the best error
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

// inFlight returns an error if the slot is busy: after a change of engines the other engine would accept the request.
func (e *Engine) inFlight(number int) error {
	return &engine.Error{
		Op: "submit", Backend: e.model.Backend, Message: fmt.Sprintf("slot %d has a request in flight, wait for it first", number),
	}
}

// on runs a request on one of the engines.
func (s *slot) on(e engine.Engine, number int) error {
	if len(s.tensors) > 0 {
		return e.SubmitTensors(number, s.tensors)
	}
	return e.Submit(number, s.images)
}

func (e *Engine) submit(number int, s *slot) error {
	if r := e.remote.Load(); r != nil && (*r).Healthy() && number < (*r).Slots() && e.takes(*r, s) {
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

// takes reports whether the servers can run the request: tensors have the format of the local network.
func (e *Engine) takes(r Remote, s *slot) bool {
	return len(s.tensors) == 0 || engine.CheckTensors(r.Model().Inputs, s.tensors) == nil
}

// Wait implements engine.Engine.
func (e *Engine) Wait(number int) (*engine.Result, error) {
	if number < 0 || number >= len(e.slots) {
		return e.Local.Wait(number)
	}
	s := &e.slots[number]
	s.busy, s.last = false, nil
	var reason error
	if r := s.remote; r != nil {
		s.remote = nil
		result, err := r.Wait(number)
		if err == nil {
			e.note(false, nil)
			s.last = r
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

// Reject takes the server that gave a slot's last result out of service, because its values are invalid. It reports whether the request can
// be repeated: by another server or by Local, unless the result was Local's.
func (e *Engine) Reject(number int, reason error) (repeat bool) {
	r := e.slots[number].last
	if r == nil {
		return false
	}
	r.Reject(number, reason)
	return true
}

// Close implements engine.Engine. It closes both engines.
func (e *Engine) Close() error {
	e.cancel()
	e.done.Wait()
	var err error
	if r := e.remote.Load(); r != nil {
		err = (*r).Close()
	}
	return errors.Join(err, e.Local.Close())
}
