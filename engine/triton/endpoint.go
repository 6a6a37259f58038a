package triton

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
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
	healthy  bool
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
func (p *endpoint) state() (healthy bool, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.healthy, p.reason
}

// suspend takes the endpoint out of service until a trial request succeeds.
func (p *endpoint) suspend(reason error) {
	p.mu.Lock()
	was := p.healthy
	text := p.engine.explain(reason)
	changed := was || p.reason != text
	p.reason = text
	p.healthy = false
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
	was, away := p.healthy, time.Since(p.since)
	first := p.since.IsZero()
	p.healthy, p.reason = true, ""
	if !was {
		p.since = time.Now()
	}
	p.mu.Unlock()
	if !was && !first {
		p.engine.log.Info("server resumed", "server", p.address.String(), "after", away.Round(time.Millisecond))
	}
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

// reasons lists the suspended servers with their reasons.
func (e *Engine) reasons() string {
	text := ""
	for _, p := range e.endpoints {
		if healthy, reason := p.state(); !healthy {
			if text != "" {
				text += "; "
			}
			text += fmt.Sprintf("%s: %s", p.address, reason)
		}
	}
	return text
}
