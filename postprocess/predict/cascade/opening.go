package cascade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/internal/backoff"
)

// opening is the state of opening the network of a stage. The lock of the worker guards it.
type opening struct {
	first     chan struct{} // closed when the first one has ended
	outcome   error         // of the first one, after that
	running   bool
	begun     time.Time // of the running one
	noticed   bool      // that it takes long
	next      time.Time // of the next one, zero for none
	failures  int       // in a row
	failed    time.Time // the last of them
	abandoned int       // requests that have not returned, with their networks
	stuck     error     // too many have not; nil while they have
}

// pause returns the time until the network is opened again after a failure or a hang.
func (o *opening) pause() time.Duration {
	if time.Since(o.failed) > backoff.HangMemory {
		o.failures = 0
	}
	o.failed = time.Now()
	o.failures++
	return backoff.Network.After(o.failures - 1)
}

// end records the outcome of the running opening.
func (o *opening) end(err error) {
	o.running = false
	select {
	case <-o.first: // it is not the first
	default:
		o.outcome = err
		close(o.first)
	}
}

// Await waits until the network of every stage is open or has failed to open once, at most until ctx ends or, if it is not 0, for limit.
// It returns the errors of those that failed; they are tried again until Close.
func (a *Secondary) Await(ctx context.Context, limit time.Duration) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var errs []error
	for _, s := range a.workers {
		select {
		case <-s.opening.first:
			errs = append(errs, s.opening.outcome)
		case <-ctx.Done():
		}
	}
	return errors.Join(errs...)
}

// reopen starts to open the network of a stage. The lock is held.
func (a *Secondary) reopen(s *worker) {
	s.opening.running, s.opening.noticed = true, false
	s.opening.begun, s.opening.next = time.Now(), time.Time{}
	if s.stats.Error == "" {
		s.stats.Error = "it is being opened"
	}
	go func() {
		n, err := a.openNetwork(s)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.opening.end(err)
		switch {
		case err == nil && s.closed:
			go n.close()
		case err == nil:
			s.begin(n)
			s.logger.Info("secondary network opened", "cascade", s.Name)
		case !s.closed:
			pause := s.opening.pause()
			s.opening.next = time.Now().Add(pause)
			s.stats.Error = err.Error()
			s.logger.Error("secondary network not opened, attributes are missing", "cascade", s.Name, "retry", pause.Round(time.Second),
				"error", err)
		}
		s.changed.Broadcast()
	}()
}

// openNetwork opens the network of a stage. It may hang.
func (a *Secondary) openNetwork(s *worker) (*network, error) {
	predictor, err := s.Opener(a.ctx)
	if err != nil {
		return nil, fmt.Errorf("cascade %s: %w", s.Name, err)
	}
	s.mu.Lock()
	stage := *s.Stage
	s.mu.Unlock()
	stage.Predictor = predictor
	a.binding.Lock()
	err = stage.bind(&a.embedder)
	a.binding.Unlock()
	var n *network
	if err == nil {
		n, err = newNetwork(&stage)
	}
	if err != nil {
		return nil, errors.Join(err, predictor.Close())
	}
	return n, nil
}

// begin makes a stage go on with an open network. The lock is held.
func (s *worker) begin(n *network) {
	s.Stage, s.net = n.stage, n
	s.stats.Hangs, s.stats.Error = false, ""
	s.window = s.stats
	go s.work(n)
}

// checkOpening reports an opening that takes long, and has a network that hangs or could not be opened opened again when its pause is over.
// The lock is held.
func (a *Secondary) checkOpening(s *worker) {
	o := &s.opening
	switch {
	case s.closed || s.Opener == nil:
	case o.running:
		if !o.noticed && time.Since(o.begun) > backoff.OpeningNotice {
			o.noticed = true
			s.logger.Warn("a secondary network is still being opened, attributes are missing", "cascade", s.Name)
			s.changed.Broadcast() // who waits for it goes on
		}
	case s.net != nil && !s.stats.Hangs:
		o.next, o.stuck = time.Time{}, nil // the request has returned after all
	case s.net != nil && o.abandoned+1 >= backoff.MostAbandoned:
		s.giveUp()
	case s.net != nil && o.next.IsZero():
		o.next, o.stuck = time.Now().Add(o.pause()), nil
	case !o.next.IsZero() && !time.Now().Before(o.next):
		s.abandon()
		a.reopen(s)
	}
}

// abandon leaves a network whose request does not return to its goroutine, which closes it when it does. The lock is held.
func (s *worker) abandon() {
	if s.net == nil {
		return
	}
	s.net = nil
	s.opening.abandoned++
	for _, known := range s.cameras {
		for _, v := range known {
			v.inFlight = false
		}
	}
}

// giveUp reports, once, that a stage is not opened again until requests return. The lock is held.
func (s *worker) giveUp() {
	if s.opening.stuck != nil {
		return
	}
	s.opening.stuck = fmt.Errorf("%d requests have not returned", s.opening.abandoned+1)
	s.stats.Error = s.opening.stuck.Error()
	s.logger.Error("secondary network is not opened again", "cascade", s.Name, "error", s.opening.stuck)
}

// Stuck returns why stages are not opened again: too many of their requests have not returned, each of which keeps its thread and memory
// until the process ends. It is nil while every stage works, is opened again, or may be.
func (a *Secondary) Stuck() error {
	var errs []error
	for _, s := range a.workers {
		s.mu.Lock()
		if s.opening.stuck != nil {
			errs = append(errs, fmt.Errorf("cascade %s: %w", s.Name, s.opening.stuck))
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}
