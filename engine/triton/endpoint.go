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
	probeInterval = 2 * time.Second        // between two probes of a healthy server
	firstRetry    = 100 * time.Millisecond // before the first probe of a suspended one; doubled each time
	lastRetry     = 2 * time.Second

	// firstSuspicion is how long a server is left alone after an invalid result, doubled with each further one. Its trial requests may
	// succeed: an empty image need not show what is wrong with it.
	firstSuspicion = 2 * time.Second
	lastSuspicion  = time.Minute
)

// endpoint is one server with a circuit breaker. A failed request suspends it. It resumes when a trial request by its watcher succeeds;
// camera frames are never used for that, so there is no half-open state.
type endpoint struct {
	engine  *Engine
	address address
	wire    wire
	// named connects to the model of the address, variant to its variant with the configured encoding, or nil. wire is one of the two once
	// chosen is set. Only Open, then the watcher, may use it until the endpoint is healthy for the first time.
	named, variant wire
	chosen         bool
	wake           chan struct{} // holds a token when something has happened

	inFlight, latency        atomic.Int64 // requests; smoothed nanoseconds
	requests, failures       atomic.Uint64
	bytesSent, bytesReceived atomic.Uint64
	frames                   atomic.Uint64
	suspensions              atomic.Uint64

	mu       sync.Mutex
	well     bool
	reason   string // why it is suspended
	since    time.Time
	version  string // of the model that answered last
	swapped  bool   // the version has changed since the last probe
	unshared string // why the configured kind of memory is not shared
	// suspicion is the pause after the last invalid result, suspected its end.
	suspicion time.Duration
	suspected time.Time

	shared, onGPU atomic.Bool // regions are in use; the images are in GPU memory
	// regions has one entry per slot, or none when tensors are sent. Slots hold users for reading while they use them; the watcher locks it
	// to change them.
	regions []*regionPair
	users   sync.RWMutex
}

// state returns the health, and the reason if the endpoint is suspended.
func (p *endpoint) state() (well bool, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.well, p.reason
}

// suspend takes the endpoint out of service until a trial request succeeds.
func (p *endpoint) suspend(reason error) {
	p.mu.Lock()
	was := p.well
	text := p.engine.explain(reason)
	changed := was || p.reason != text
	p.reason = text
	p.well = false
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

// reject suspends the endpoint because a result was invalid. It is not tried again until a pause has passed, which doubles while the
// server's results stay invalid.
func (p *endpoint) reject(reason error) {
	p.mu.Lock()
	now := time.Now()
	if now.Sub(p.suspected) > lastSuspicion {
		p.suspicion = 0
	}
	if now.After(p.suspected) { // several slots may have results of the same time
		p.suspicion = min(max(2*p.suspicion, firstSuspicion), lastSuspicion)
		p.suspected = now.Add(p.suspicion)
	}
	p.mu.Unlock()
	p.failures.Add(1)
	p.suspend(reason)
}

// pauseLeft returns the time until the endpoint may be tried again, at least firstRetry.
func (p *endpoint) pauseLeft() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.suspected), firstRetry)
}

func (p *endpoint) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// resume returns the endpoint to service.
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
		p.engine.log.Info("server resumed", "server", p.address.String(), "after", away.Round(time.Millisecond))
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
				if !sleep(ctx, p.pauseLeft()) {
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
	a := &answer{limit: answerLimit}
	if err := p.wire.infer(ctx, r, a); err != nil {
		return nil, err
	}
	p.noteVersion(a.Version)
	return p.engine.ordered(nil, &a.InferResponse, int64(batch))
}

// noteVersion records the model version of an answer. A change wakes the watcher, which compares the models.
func (p *endpoint) noteVersion(version string) {
	p.mu.Lock()
	was := p.version
	changed := version != was
	if changed {
		p.version, p.swapped = version, was != ""
	}
	p.mu.Unlock()
	if changed && was != "" {
		p.engine.log.Info("model version changed on the server", "server", p.address.String(), "was", was, "is", version)
		p.wakeUp()
	}
}

// infer runs the slot's request on this server, which reserve has returned.
func (p *endpoint) infer(ctx context.Context, s *slot) error {
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

// failure classifies the error of a request.
type failure int

const (
	refused   failure = iota // the request is invalid
	busy                     // the server is overloaded; another one may have capacity
	lost                     // the connection broke
	unhealthy                // the server failed or is unreachable
)

// classify returns the class of a request's error.
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

// explorationInterval is the number of requests of which one goes to the least used of the least loaded servers, so that the latency and
// health of every server stay current.
const explorationInterval = 8

// choose returns the healthy untried server with the fewest requests in flight, or nil. Of several, it returns the fastest, except for one
// request in explorationInterval.
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

// reserve is choose, and counts a request in flight that the caller ends with inFlight. Two slots that choose at once do not both take the
// least loaded server.
func (e *Engine) reserve(tried []*endpoint) *endpoint {
	e.choosing.Lock()
	defer e.choosing.Unlock()
	p := e.choose(tried)
	if p != nil {
		p.inFlight.Add(1)
	}
	return p
}

// reasons lists the suspended servers with their reasons.
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
