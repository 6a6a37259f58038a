package triton

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
)

const (
	probeInterval = 2 * time.Second        // between two probes of a healthy server
	firstRetry    = 100 * time.Millisecond // before the first probe of a suspended one; doubled each time
	lastRetry     = 2 * time.Second

	// firstSuspicion is how long a server is not used after an invalid result; it doubles with each further one. Its trial requests may
	// succeed, because an empty image need not show the fault.
	firstSuspicion = 2 * time.Second
	lastSuspicion  = time.Minute
)

// watch monitors the server until ctx ends.
func (p *endpoint) watch(ctx context.Context) {
	pause := probeInterval
	if healthy, _ := p.state(); !healthy {
		pause = firstRetry
	}
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-p.wake:
			timer.Stop()
			if healthy, _ := p.state(); !healthy {
				pause = firstRetry
				if !sleep(ctx, p.pauseLeft()) {
					return
				}
			}
		case <-timer.C:
		}
		p.engine.renewToken()
		if healthy, _ := p.state(); healthy {
			p.probe(ctx)
			pause = probeInterval
			continue
		}
		if err := p.recover(ctx); err != nil {
			p.suspend(err)
			p.drain()
			pause = min(max(2*pause, firstRetry), lastRetry)
			continue
		}
		p.resume()
		pause = probeInterval
	}
}

// drain removes a wake-up that the watcher sent itself.
func (p *endpoint) drain() {
	select {
	case <-p.wake:
	default:
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// probe checks that a healthy server is still ready and that its model has not changed. It suspends the endpoint otherwise.
func (p *endpoint) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.engine.timeout)
	defer cancel()
	p.mu.Lock()
	swapped := p.swapped
	p.swapped = false
	p.mu.Unlock()
	err := p.wire.ready(ctx)
	if err == nil && swapped {
		err = p.compare(ctx)
	}
	if err == nil && p.onGPU.Load() && p.engine.gpuDisabledReason() != "" {
		err = p.prepare(ctx)
	}
	if err != nil && p.engine.context.Err() == nil {
		p.suspend(err)
	}
}

// compare returns an error if the server's model differs from the opened one.
func (p *endpoint) compare(ctx context.Context) error {
	var d *description
	var err error
	if p.chosen {
		d, err = p.wire.describe(ctx)
	} else {
		var way wire
		if way, d, err = p.findModel(ctx); err == nil {
			p.wire, p.chosen = way, true
		}
	}
	if err != nil {
		return err
	}
	return p.engine.sameModel(d)
}

// recover checks the server and its model on new connections, since old ones may be dead, and prepares the endpoint for requests.
func (p *endpoint) recover(ctx context.Context) error {
	p.wire.renew()
	ctx, cancel := context.WithTimeout(ctx, 3*p.engine.timeout)
	defer cancel()
	if err := p.compare(ctx); err != nil {
		return err
	}
	if err := p.wire.ready(ctx); err != nil {
		return err
	}
	return p.prepare(ctx)
}

// prepare runs the model on an empty image and sets up shared memory with a server on this machine.
func (p *endpoint) prepare(ctx context.Context) error {
	e := p.engine
	if e.img == nil {
		return nil
	}
	p.users.Lock()
	p.unshare(ctx)
	p.wire.renew() // cached heads name removed regions
	p.users.Unlock()
	if err := p.trial(ctx); err != nil {
		return err
	}
	if e.remote.SharedMemory == NoMemory {
		return nil
	}
	unshared := e.notShareable(p.address)
	if unshared == "" {
		p.users.Lock()
		defer p.users.Unlock()
		var err error
		if unshared, err = p.share(ctx); err != nil {
			unshared = e.explain(err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if unshared != "" && unshared != p.unshared && e.remote.SharedMemory == CUDAMemory {
		e.log.Warn("images are not shared in GPU memory", "server", p.address.String(), "shared memory", p.shared.Load(), "reason", unshared)
	}
	p.unshared = unshared
	return nil
}

// notShareable returns why memory cannot be shared with a server, or "".
func (e *Engine) notShareable(a address) string {
	switch {
	case !a.loopback():
		return "the address is not local"
	case e.jpeg:
		return "the model takes JPEG"
	}
	return ""
}

// trial runs try within the timeout of one request.
func (p *endpoint) trial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.engine.timeout)
	defer cancel()
	_, err := p.try(ctx)
	return err
}

// try runs the model on an empty image and returns the outputs.
func (p *endpoint) try(ctx context.Context) ([]engine.Tensor, error) {
	in := p.engine.img
	batch := max(in.Batch, 1)
	r := &request{}
	r.Inputs = []kserve.Tensor{{
		Name: p.engine.model.Inputs[0].Name, Datatype: kserve.Datatype(in.Type), Shape: in.Shape(batch),
		Data: make([]byte, batch*in.ImageBytes()),
	}}
	if p.engine.jpeg {
		var err error
		if r.Inputs[0], err = p.engine.jpegTensor(&compressor{}, r.Inputs[0].Data); err != nil {
			return nil, err
		}
	}
	r.Inputs = p.engine.withAuxiliary(r.Inputs, batch)
	a := p.engine.newAnswer(p.engine.largestAnswer(batch))
	defer a.memory.End()
	if err := p.wire.infer(ctx, r, a); err != nil {
		return nil, err
	}
	p.noteVersion(a.Version)
	return p.engine.ordered(nil, &a.InferResponse, int64(batch))
}
