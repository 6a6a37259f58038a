package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// partLimit is how long a part of a run may take to end once somebody waits for the end.
	partLimit = 1500 * time.Millisecond
	// viewLimit is the same for what people and programs read: they have outputDrainTime.
	viewLimit = outputDrainTime + 500*time.Millisecond
	// runLimit is how long all parts may take. With what follows it, a program ends within 5 s.
	runLimit = 4300 * time.Millisecond
	// settleLimit is how long the last accounts may take after that.
	settleLimit = 500 * time.Millisecond
)

// ending ends the parts of a run. One that hangs is left alone: the process ends without it.
type ending struct {
	asked   chan struct{} // closed when a signal, --duration or a restart asks for the end; a run that ends by itself has time
	logger  *slog.Logger
	hanging atomic.Bool
	settled sync.Once
}

// part ends a part of a run and returns its error, nil for one that hangs.
func (e *ending) part(name string, limit time.Duration, end func() error) error {
	done := make(chan error, 1)
	go func() { done <- end() }()
	select {
	case err := <-done:
		return err
	case <-e.asked:
	}
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		e.hanging.Store(true)
		e.logger.Warn("not waited for any longer at the end", "part", name, "after", limit)
		return nil
	}
}

// hangs reports whether a part was left alone.
func (e *ending) hangs() bool { return e.hanging.Load() }

// runUntil runs until the run has ended, or until runLimit after a signal, --duration or a restart asked for the end.
func (r *run) runUntil(ctx context.Context, hangup <-chan os.Signal) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.control.End, r.control.Ended = cancel, inner.Done()
	r.ending.logger, r.ending.asked = r.logger, make(chan struct{})
	ask := sync.OnceFunc(func() { close(r.ending.asked) })
	defer context.AfterFunc(ctx, ask)()
	defer context.AfterFunc(inner, func() {
		if errors.Is(context.Cause(inner), ErrRestart) {
			ask()
		}
	})()
	outcome := make(chan error, 1)
	go func() { outcome <- r.run(inner, cancel, hangup) }()
	select {
	case err := <-outcome:
		return err
	case <-r.ending.asked:
	}
	select {
	case err := <-outcome:
		return err
	case <-time.After(runLimit):
	}
	r.logger.Error("the program ends although a part of it hangs", "after", runLimit)
	settled := make(chan error, 1)
	go func() { settled <- r.settle() }()
	var err error
	select {
	case err = <-settled:
	case <-time.After(settleLimit):
	}
	if errors.Is(context.Cause(inner), ErrRestart) {
		return ErrRestart
	}
	return err
}

// settle prints the accounts of the run, the first time. Events of an MQTT client that could not be closed are on disk then, or lost, which
// is the error.
func (r *run) settle() (err error) {
	r.ending.settled.Do(func() {
		err = r.outputs.Abandon()
		if r.fleet.Opened() {
			err = errors.Join(err, r.outputs.Account(r.final()))
		}
	})
	return err
}
