package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// errTooMany is why an object was not asked about although the service answers.
var errTooMany = errors.New("there are more objects than it answers for in time")

// ask begins a question. The lock is held.
func (g *Gate) ask(ctx context.Context, o *object, now time.Time) {
	q := &question{event: o.held[0].Message, image: o.crop, until: o.deadline}
	if o.restored {
		q.until = now.Add(g.Timeout)
	}
	o.state = asked
	g.inFlight++
	g.status.Asked++
	g.asking.Go(func() {
		limited, cancel := context.WithDeadline(ctx, q.until)
		defer cancel()
		a, err := g.put(limited, q)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inFlight--
		g.notify()
		if ctx.Err() != nil && err != nil {
			return // the run ends, and Finish or the next run decides
		}
		g.answered(o, a, err, time.Since(now))
	})
}

// answered decides an object, unless that has happened meanwhile, and judges the service.
func (g *Gate) answered(o *object, a answer, err error, took time.Duration) {
	if err == nil && a.verdict == relabelled {
		err = g.learn(a.label)
	}
	now := time.Now()
	var away awayError
	switch {
	case errors.As(err, &away):
		g.retryAt = now.Add(g.retry.After(g.failures))
		g.failures++
		g.failing(err, now)
	case err != nil:
		g.failures, g.retryAt = 0, time.Time{}
		g.failing(err, now)
	default:
		g.failures, g.retryAt = 0, time.Time{}
		g.latest.add(took)
		g.working()
	}
	if err != nil {
		a = answer{}
	}
	if o.state != decided {
		g.decide(o, a)
	}
	if g.retryAt.IsZero() {
		return
	}
	for _, other := range slices.Clone(g.undecided) { // they need not wait for it as well
		if other.state == waiting {
			g.decide(other, answer{})
		}
	}
}

// learn returns an error if the service gives too many labels.
func (g *Gate) learn(label string) error {
	if !g.labels[label] && len(g.labels) >= maxLabels {
		return fmt.Errorf("it has given more than %d labels", maxLabels)
	}
	g.labels[label] = true
	return nil
}

// settleLoop forgets the records of events that are on disk elsewhere, until ctx ends.
func (g *Gate) settleLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.settling:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settleInterval):
		}
		if g.settle() != nil {
			token(g.settling)
		}
	}
}

// settle waits until events that were passed on are on disk elsewhere, and forgets their records.
func (g *Gate) settle() error {
	g.mu.Lock()
	released := g.released
	g.released = nil
	g.mu.Unlock()
	if len(released) == 0 {
		return nil
	}
	var err error
	if g.Durable != nil {
		err = g.Durable()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.released = append(released, g.released...)
		if surplus := len(g.released) - maxReleased; surplus > 0 {
			g.journal.forget(g.released[:surplus]...)
			g.released = g.released[surplus:]
		}
		return err
	}
	g.journal.forget(released...)
	return nil
}

// Finish decides everything that is held: it waits for the answers, but not for long from hurry on. Run must be running, and no event may
// come afterwards.
func (g *Gate) Finish(hurry <-chan struct{}) error {
	g.mu.Lock()
	g.finishing = true
	g.mu.Unlock()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var limit <-chan time.Time
	for waits := true; waits; {
		select {
		case <-hurry:
			hurry, limit = nil, time.After(finishLimit)
		case <-limit:
			waits = false
		case <-ticker.C:
			waits = g.Status().Held > 0
		}
	}
	g.mu.Lock()
	for len(g.undecided) > 0 {
		g.decide(g.undecided[0], answer{})
	}
	g.mu.Unlock()
	return g.settle()
}

// Close closes the journal. What it holds is asked about by the next run. It is idempotent and safe on a gate that was never opened.
func (g *Gate) Close() error {
	if g.wake == nil {
		return nil
	}
	return g.journal.records.Close()
}
