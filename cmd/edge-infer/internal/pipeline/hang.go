package pipeline

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

const (
	// hangLimit is how long a request may take at least before the predictor is hung; slow networks get slowRequests times what they took.
	hangLimit    = 10 * time.Second
	slowRequests = 4
	// firstLimit is the same for a predictor that has not answered yet: at first it loads kernels and chooses among them.
	firstLimit = 2 * time.Minute
	// endLimit is how long requests in flight are waited for when the loop ends.
	endLimit = 2 * time.Second
	// watchPause is the time between two checks of the call that the loop is in. Of a longer pause no more counts, because then the
	// whole process was stopped.
	watchPause = 250 * time.Millisecond
)

// Hung is the fault of a predictor that did not return from a request in time.
type Hung struct {
	After time.Duration
	first bool // it has never returned from one
}

// Error returns the text in one line.
func (h *Hung) Error() string {
	if h.first {
		return fmt.Sprintf("the network hangs: its first request has not returned for %v", h.After.Round(time.Second))
	}
	return fmt.Sprintf("the network hangs: a request has not returned for %v", h.After.Round(time.Second))
}

// guard decides between the loop's goroutine and Run, which watches it, who owns the state of the loop. That is the goroutine, until Run
// abandons it in a call into the predictor; then it keeps the requests that were in flight, and another goroutine runs the loop.
type guard struct {
	predictor Predictor
	requests  []request
	returned  func()        // called when the abandoned call has returned; set before calls changes to abandoned
	calls     atomic.Uint64 // odd during a call; abandoned from then on
}

const abandoned = ^uint64(0)

// enter begins a call into the predictor, which it returns: until leave, the loop's goroutine must not use the state of the loop.
func (g *guard) enter(p *Pipeline) Predictor {
	g.predictor, g.requests = p.Predictor, p.requests
	g.calls.Add(1)
	return g.predictor
}

// leave ends a call into the predictor for a slot, which then has a request in flight or not. If the call was abandoned meanwhile, leave
// waits for the other requests, releases their frames, and ends the goroutine.
func (g *guard) leave(slot int, inFlight bool) {
	call := g.calls.Load()
	if call != abandoned && g.calls.CompareAndSwap(call, call+1) {
		return
	}
	for i := range g.requests {
		r := &g.requests[i]
		if len(r.frames) == 0 {
			continue
		}
		if i != slot || inFlight {
			_, _ = g.predictor.Wait(i)
		}
		for j := range r.frames {
			r.frames[j].Release()
		}
	}
	g.returned()
	runtime.Goexit()
}

// inCall reports whether the loop is in a call into the predictor.
func (g *guard) inCall() bool { return g.calls.Load()&1 == 1 }

// watch runs the loop in a goroutine of its own and returns its error. A goroutine that does not return from a call into the predictor is
// abandoned with the requests in flight, and the loop goes on in another one without the predictor.
func (p *Pipeline) watch(ctx context.Context, ended <-chan struct{}) error {
	outcome := make(chan error, 1)
	start := func() {
		p.guard.Store(new(guard))
		go func() { outcome <- p.loop(ctx, ended) }() // an abandoned goroutine ends without an outcome
	}
	start()
	ticker := time.NewTicker(watchPause)
	defer ticker.Stop()
	var w callWatch
	for {
		select {
		case err := <-outcome:
			return err
		case <-ticker.C:
		}
		g := p.guard.Load()
		// The last frame of a quota is waited for as long as any other.
		fault := w.check(p, g, ctx.Err() != nil && !p.Quota.used())
		if fault == nil || !p.abandon(g, w.call, fault) {
			continue
		}
		if p.OnFault == nil {
			return fault
		}
		if ctx.Err() == nil { // else nobody recovers it any more
			p.OnFault(fault)
		}
		start()
	}
}

// callWatch measures how long the loop has been in one call.
type callWatch struct {
	call    uint64
	checked time.Time
	lasted  time.Duration // of the call
	ended   time.Duration // of it since the loop should end
}

// check returns why a call is to be abandoned, nil if it is not.
func (w *callWatch) check(p *Pipeline, g *guard, ending bool) *Hung {
	now := time.Now()
	elapsed := min(now.Sub(w.checked), 2*watchPause)
	w.checked = now
	call := g.calls.Load()
	if call != w.call || call&1 == 0 {
		w.call, w.lasted, w.ended = call, 0, 0
		p.overdue.Store(0)
		return nil
	}
	w.lasted += elapsed
	if ending {
		w.ended += elapsed
	}
	took := p.InferenceTime()
	limit, first := max(hangLimit, slowRequests*took), took == 0
	if w.lasted >= limit && p.overdue.Swap(int64(w.lasted)) == 0 {
		p.Logger.Warn("a request to the network has not returned", "cameras", p.names(), "after", w.lasted.Round(time.Second))
	}
	if first {
		limit = firstLimit
	}
	if w.lasted < limit && w.ended < endLimit {
		return nil
	}
	return &Hung{After: w.lasted, first: first}
}

// abandon takes the state of the loop from the goroutine that is in a call into the predictor. It reports false if the call has returned.
func (p *Pipeline) abandon(g *guard, call uint64, fault *Hung) bool {
	returned := func() {}
	if p.Hold != nil {
		returned = p.Hold()
	}
	g.returned = returned
	if !g.calls.CompareAndSwap(call, abandoned) {
		returned()
		return false
	}
	p.overdue.Store(0)
	for i := range p.requests {
		for j := range p.requests[i].frames {
			p.requests[i].streams[j].meter.fail(fault)
		}
	}
	p.makeRequests()
	p.oldest, p.busy, p.review = 0, 0, nil
	p.DeviceShare.release()
	p.fault = fault
	return true
}

// Overdue is for how long a request has not returned, 0 unless that is longer than requests of this network take.
func (p *Pipeline) Overdue() time.Duration { return time.Duration(p.overdue.Load()) }

// names returns the names of the cameras, for messages.
func (p *Pipeline) names() (names []string) {
	for _, camera := range *p.streams.Load() {
		names = append(names, camera.Name)
	}
	return names
}

// releaseAll releases frames that an abandoned goroutine held outside of its requests, and counts them as lost.
func releaseAll(frames []capture.Frame, streams []*stream) {
	for i := range frames {
		frames[i].Release()
		streams[i].meter.fail(&Hung{After: hangLimit})
	}
}
