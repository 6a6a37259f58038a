package triton

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
)

const (
	probeInterval = 2 * time.Second        // between two looks at a server that is well
	firstRetry    = 100 * time.Millisecond // before the first look at one that is not; doubled each time
	lastRetry     = 2 * time.Second
)

// endpoint is one server. A request that fails there suspends it; it comes back when a request of its own maker has passed: what a camera
// saw is never used to find out. So there is no half-open state, and the circuit needs no counting.
type endpoint struct {
	engine  *Engine
	address address
	wire    wire
	// named leads to the model of the address, beside to the one next to it that takes another encoding, nil where none was asked for. wire is
	// one of the two, once chosen; it is the watcher's, and Open's before it, until the endpoint is well for the first time.
	named, beside wire
	chosen        bool
	wake          chan struct{} // holds a token when something has happened

	inFlight, latency        atomic.Int64 // requests; smoothed nanoseconds
	requests, failures       atomic.Uint64
	bytesSent, bytesReceived atomic.Uint64
	frames                   atomic.Uint64
	suspensions              atomic.Uint64

	mu       sync.Mutex
	well     bool
	reason   string // why it is not well
	since    time.Time
	version  string // of the model that answered last
	swapped  bool   // the version is another one since the last look
	unshared string // why what was asked for is not shared with a server on this machine

	shared, onGPU atomic.Bool // lanes are in use; their images are in a GPU's memory
	// lanes are those of the slots, nil when tensors are sent. Slots read them while the endpoint is well and hold users; the watcher changes
	// them when nobody does.
	regions []*regionPair
	users   sync.RWMutex
}

// state of an endpoint.
func (p *endpoint) state() (well bool, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.well, p.reason
}

// suspend takes the endpoint out of service until it has been looked at.
func (p *endpoint) suspend(reason error) {
	p.mu.Lock()
	was := p.well
	text := p.engine.explain(reason)
	changed := was || p.reason != text
	p.reason, p.well = text, false
	if was {
		p.since = time.Now()
		p.suspensions.Add(1)
	}
	p.mu.Unlock()
	if changed {
		p.engine.log.Warn("server suspended", "server", p.address.String(), "reason", text)
	}
	p.wakeUp()
}

func (p *endpoint) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// resume puts it back.
func (p *endpoint) resume() {
	p.mu.Lock()
	was, away := p.well, time.Since(p.since)
	first := p.since.IsZero()
	p.well, p.reason = true, ""
	if !was {
		p.since = time.Now()
	}
	p.mu.Unlock()
	if !was && !first {
		p.engine.log.Info("server is well again", "server", p.address.String(), "after", away.Round(time.Millisecond))
	}
}

// watch looks after the server until ctx ends.
func (p *endpoint) watch(ctx context.Context) {
	pause := probeInterval
	if well, _ := p.state(); !well {
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
			if well, _ := p.state(); !well {
				pause = firstRetry
				if !sleep(ctx, pause) {
					return
				}
			}
		case <-timer.C:
		}
		p.engine.renewToken()
		if well, _ := p.state(); well {
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

// drain forgets a token that the watcher gave itself.
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

// probe asks a server that is well whether it still is, and whether its model is still the one that was opened.
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
	if err == nil && p.onGPU.Load() && p.engine.withoutGPU() != "" {
		err = p.prepare(ctx)
	}
	if err != nil && p.engine.context.Err() == nil {
		p.suspend(err)
	}
}

// compare reports a model that is not the one that was opened.
func (p *endpoint) compare(ctx context.Context) error {
	var d *description
	var err error
	if p.chosen {
		d, err = p.wire.describe(ctx)
	} else {
		var way wire
		if way, d, err = p.ask(ctx); err == nil {
			p.wire, p.chosen = way, true
		}
	}
	if err != nil {
		return err
	}
	return p.engine.sameModel(d)
}

// recover does everything that a request needs, on connections of its own: an old one may lead nowhere.
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

// prepare tries the model with an image of nothing, and shares memory with a server on this machine.
func (p *endpoint) prepare(ctx context.Context) error {
	e := p.engine
	if e.img == nil {
		return nil
	}
	p.users.Lock()
	p.unshare(ctx)
	p.wire.renew() // what is kept names regions that are gone
	p.users.Unlock()
	if err := p.trial(ctx); err != nil {
		return err
	}
	if e.remote.SharedMemory == NoMemory {
		return nil
	}
	unshared := e.unshareable(p.address)
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
		e.log.Warn("images do not stay on the GPU", "server", p.address.String(), "shared memory", p.shared.Load(), "reason", unshared)
	}
	p.unshared = unshared
	return nil
}

// unshareable says why there is no memory to share with a server.
func (e *Engine) unshareable(a address) string {
	switch {
	case !a.loopback():
		return "it is not on this machine, by its address"
	case e.jpeg:
		return "it takes JPEG"
	}
	return ""
}

// trial is a request within the time that one has.
func (p *endpoint) trial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.engine.timeout)
	defer cancel()
	_, err := p.try(ctx)
	return err
}

// try infers an image of nothing and returns the outputs.
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
	a := &answer{limit: answerLimit}
	if err := p.wire.infer(ctx, r, a); err != nil {
		return nil, err
	}
	p.noteVersion(a.Version)
	return p.engine.ordered(nil, &a.InferResponse, int64(batch))
}

// noteVersion notices that the server has another version of the model.
func (p *endpoint) noteVersion(version string) {
	p.mu.Lock()
	was := p.version
	changed := version != was
	if changed {
		p.version, p.swapped = version, was != ""
	}
	p.mu.Unlock()
	if changed && was != "" {
		p.engine.log.Info("server has another version of the model", "server", p.address.String(), "was", was, "is", version)
		p.wakeUp()
	}
}

// infer does the slot's request here.
func (p *endpoint) infer(ctx context.Context, s *slot) error {
	p.inFlight.Add(1)
	defer p.inFlight.Add(-1)
	p.users.RLock()
	defer p.users.RUnlock()
	p.requests.Add(1)
	began := time.Now()
	shared, err := s.load(p)
	if err != nil {
		return err
	}
	err = p.wire.infer(ctx, &s.request, &s.answer)
	if err == nil && shared != nil {
		err = shared.collect(p.engine, &s.request, &s.answer)
	}
	p.bytesSent.Add(uint64(s.answer.sent))
	p.bytesReceived.Add(uint64(s.answer.received))
	if err == nil {
		s.answer.align()
		s.Result.Outputs, err = p.engine.ordered(s.Result.Outputs, &s.answer.InferResponse, s.batch)
	}
	if err != nil {
		p.failures.Add(1)
		return err
	}
	p.frames.Add(uint64(max(len(s.Images), 1)))
	p.noteVersion(s.answer.Version)
	took, mean := int64(time.Since(began)), p.latency.Load()
	if mean == 0 {
		mean = took
	}
	p.latency.Store((7*mean + took) / 8)
	return nil
}

// failure says what a failed request means.
type failure int

const (
	refused   failure = iota // the request is at fault
	busy                     // the server has too much to do: another one may have less
	lost                     // a connection is gone
	unhealthy                // the server is at fault, or away
)

// classify tells whose fault an error is.
func classify(err error) failure {
	var s *kserve.Status
	if !errors.As(err, &s) {
		var mismatch *engine.Error
		switch {
		case errors.As(err, &mismatch), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return unhealthy
		}
		return lost
	}
	switch s.Code {
	case kserve.ResourceExhausted:
		return busy
	case kserve.Unavailable:
		for _, sign := range []string{"maximum queue size", "timeout expired", "too many"} {
			if strings.Contains(strings.ToLower(s.Message), sign) {
				return busy
			}
		}
	case kserve.InvalidArgument, kserve.OutOfRange:
		return refused
	}
	return unhealthy
}

// explorationInterval is of how many requests one goes to the server that has had the fewest, of those with the least to do: the latency of one that is
// never asked would be what it once was for ever, and so would its health.
const explorationInterval = 8

// choose returns the server with the least to do that is well and was not tried, nil for none; the fastest of several, but for a request
// now and then.
func (e *Engine) choose(tried []*endpoint) *endpoint {
	asked := uint64(0)
	for _, p := range e.endpoints {
		asked += p.requests.Load()
	}
	before := func(p, other *endpoint) bool {
		load, others := p.inFlight.Load(), other.inFlight.Load()
		switch {
		case load != others:
			return load < others
		case asked%explorationInterval == 0:
			return p.requests.Load() < other.requests.Load()
		}
		return p.latency.Load() < other.latency.Load()
	}
	var best *endpoint
	for _, p := range e.endpoints {
		if well, _ := p.state(); !well || slices.Contains(tried, p) {
			continue
		}
		if best == nil || before(p, best) {
			best = p
		}
	}
	return best
}

// reasons says of every server why it is not well.
func (e *Engine) reasons() string {
	text := ""
	for _, p := range e.endpoints {
		if well, reason := p.state(); !well {
			if text != "" {
				text += "; "
			}
			text += fmt.Sprintf("%s: %s", p.address, reason)
		}
	}
	return text
}
