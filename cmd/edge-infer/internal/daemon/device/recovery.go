package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// fault is what is wrong with the predictor of a device. Methods may be called from any goroutine.
type fault struct {
	reports chan error // holds the newest error of the frame loop

	mu   sync.Mutex
	err  error     // nil while the predictor works
	lost bool      // another attempt is not expected to help
	next time.Time // of the next attempt to open a predictor, or of the restart; zero for none
	what string    // happens next; empty while a predictor is being opened
}

// report passes on why the frame loop stopped using its predictor.
func (f *fault) report(err error) { f.reports <- err }

func (f *fault) set(err error, lost bool, next time.Time) { f.setNext(err, lost, next, "opened again") }

func (f *fault) setNext(err error, lost bool, next time.Time, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.lost = err, lost
	f.next, f.what = next, what
}

// openSince records that a predictor is being opened.
func (f *fault) openSince(begun time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next, f.what = begun, ""
}

// restarts is what happens next to a fault that a new process may not have.
const restarts = "the program restarts"

func (f *fault) waitsForRestart() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.what == restarts
}

func (f *fault) isLost() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// text describes the fault; empty for none.
func (f *fault) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err == nil:
		return ""
	case f.next.IsZero():
		return "network failed: " + f.err.Error()
	case f.what == "":
		return fmt.Sprintf("network failed, being opened since %s: %v", f.next.Format(time.TimeOnly), f.err)
	}
	return fmt.Sprintf("network failed, %s at %s: %v", f.what, f.next.Format(time.TimeOnly), f.err)
}

// faultText describes why the device's cameras have no results; empty if they have.
func (d *Device) faultText() string {
	if text := d.fault.text(); text != "" {
		return text
	}
	if overdue := d.Overdue(); overdue > 0 {
		return fmt.Sprintf("network hangs: a request has not returned for %v", overdue.Round(time.Second))
	}
	return ""
}

const (
	// firstPause is the shortest time from the start of a run until it asks for a restart, which doubles with each restart before, and
	// hangRestart that until it does so because of abandoned calls while other networks work.
	firstPause  = 30 * time.Second
	hangRestart = 10 * time.Minute
	// mostDoublings of firstPause give 16 minutes.
	mostDoublings = 5
)

// supervise opens the predictor of a device again whenever it is at fault or could not be opened yet, until ctx ends. exhausted is called
// when no device of the set is expected to recover.
func (s *Set) supervise(ctx context.Context, d *Device, exhausted func()) {
	if d.Waits() {
		d.fault.report(s.finishOpening(ctx, d))
	}
	var past faults
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-d.fault.reports:
			if err != nil {
				past.add(d, err)
				s.logFault(d, err)
			}
			if !s.recover(ctx, d, err, &past, exhausted) {
				return
			}
		}
		d.fault.set(nil, false, time.Time{})
		s.logger.Info("network opened", "cameras", d.cameras())
	}
}

// recover opens a predictor of a device again and again until one is there. It reports false if ctx ends before.
func (s *Set) recover(ctx context.Context, d *Device, err error, past *faults, exhausted func()) bool {
	for err != nil {
		switch {
		case errors.Is(err, engine.ErrContextLost):
			s.restart(ctx, d, err, s.restartPause(), func() error { return err })
			return false
		case s.tooManyAbandoned() != nil && !s.restart(ctx, d, err, hangRestart, s.tooManyAbandoned):
			return false
		}
		pause := s.reopening.After(past.failures + max(0, past.hangs-1))
		d.fault.set(err, past.failures > 0, time.Now().Add(pause))
		s.checkLost(exhausted)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		past.failures++
		if err = s.replace(ctx, d); err != nil && ctx.Err() == nil {
			s.logger.Warn("network not opened again", "cameras", d.cameras(), "error", err)
		}
	}
	return true
}

func (s *Set) logFault(d *Device, err error) {
	what := "network failed"
	if d.Waits() {
		what = "network not opened"
	}
	s.logger.Error(what, "cameras", d.cameras(), "error", err)
}

// faults counts the faults of a device's predictors, from which the pauses follow.
type faults struct {
	failures int    // in a row, without a frame between them
	inferred uint64 // frames until the last one
	hangs    int    // without backoff.HangMemory between them: one that hangs now and then costs a thread each time
	hung     time.Time
}

func (f *faults) add(d *Device, err error) {
	if now := d.inferred(); now > f.inferred {
		f.inferred = now
		f.failures = 0
	}
	if time.Since(f.hung) > backoff.HangMemory {
		f.hangs = 0
	}
	if errors.As(err, new(*pipeline.Hung)) {
		f.hung = time.Now()
		f.hangs++
	}
}

// finishOpening has a device start with its first predictor, which may still be being opened, and returns why it cannot.
func (s *Set) finishOpening(ctx context.Context, d *Device) error {
	if !errors.Is(d.fault.err, errOpening) {
		return d.fault.err
	}
	s.logger.Warn("the cameras start without a network that is still being opened", "cameras", d.cameras())
	next, err := s.await(ctx, d, d.opening)
	if err != nil {
		return err
	}
	return s.Swap(ctx, d, next)
}

// await returns a predictor that is being opened. One that does not end with ctx is left alone, and closed when it is there.
func (s *Set) await(ctx context.Context, d *Device, opening <-chan opened) (predict.Predictor, error) {
	begun := time.Now()
	d.fault.openSince(begun)
	notice := time.After(backoff.OpeningNotice)
	for {
		select {
		case result := <-opening:
			return result.predictor, result.err
		case <-notice:
			s.logger.Warn("a network is still being opened", "cameras", d.cameras(), "after", time.Since(begun).Round(time.Second))
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), closeLate(opening))
		}
	}
}

// closeLate closes a predictor that nobody wants any more as soon as it is open, and waits endLimit for it.
func closeLate(opening <-chan opened) error {
	closed := make(chan error, 1)
	go func() {
		late := <-opening
		if late.err == nil {
			late.err = late.predictor.Close()
		}
		closed <- late.err
	}()
	select {
	case err := <-closed:
		return err
	case <-time.After(endLimit):
		return nil
	}
}

// abandonedCalls returns how many calls into predictors have not returned.
func (s *Set) abandonedCalls() (calls int) {
	for _, d := range s.All {
		calls += int(d.abandoned.Load())
	}
	return calls
}

// tooManyAbandoned returns why the program must start anew, nil if it need not.
func (s *Set) tooManyAbandoned() error {
	if calls := s.abandonedCalls(); calls >= backoff.MostAbandoned {
		return fmt.Errorf("%d requests to networks have not returned", calls)
	}
	return nil
}

func (s *Set) restartPause() time.Duration { return firstPause << min(s.Restarts, mostDoublings) }

// restart asks for a new process, at the earliest pause after the start of this run, or restartPause if no other network works. It reports
// true if the reason is gone by then, false if ctx has ended.
func (s *Set) restart(ctx context.Context, d *Device, err error, pause time.Duration, reason func() error) (recovered bool) {
	at := s.started.Add(pause)
	d.fault.setNext(err, true, at, restarts)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		why := reason()
		if why == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case now := <-ticker.C:
			if now.After(at) || s.allLost() && now.After(s.started.Add(s.restartPause())) {
				s.logger.Error("restarting", "cameras", d.cameras(), "error", why)
				s.Restart()
				<-ctx.Done()
				return false
			}
		}
	}
}

// HangRestart returns the earliest time at which the program starts anew because of calls that have not returned while others work.
func (s *Set) HangRestart() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started.Add(hangRestart)
}

// restartForSecondary asks for a new process if a secondary network has too many calls that have not returned at HangRestart, or later.
func (s *Set) restartForSecondary(ctx context.Context) {
	if s.SecondaryStuck == nil {
		return
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if err := s.SecondaryStuck(); err != nil && now.After(s.HangRestart()) {
				s.logger.Error("restarting", "error", err)
				s.Restart()
				return
			}
		}
	}
}

// inferred returns the number of frames that a device has inferred.
func (d *Device) inferred() (frames uint64) {
	for _, totals := range d.Totals() {
		frames += totals.Inferred
	}
	return frames
}

// openAgain opens a predictor with the options of a device, in an engine of its own.
func openAgain(ctx context.Context, d *Device) (predict.Predictor, error) {
	builder := network.PredictorBuilder{Inference: d.group.Network.Inference, OpenNetwork: func(ctx context.Context, o predict.Options) (
		predict.Predictor, error,
	) {
		return network.AsPredictor(d.openNetwork(ctx, o))
	}}
	return builder.Open(ctx, d.openingOptions())
}

// replace makes a device go on with a new predictor.
func (s *Set) replace(ctx context.Context, d *Device) error {
	opening := make(chan opened, 1)
	go func() {
		predictor, err := s.reopen(ctx, d)
		opening <- opened{predictor, err}
	}()
	next, err := s.await(ctx, d, opening)
	if err != nil {
		return err
	}
	return s.Swap(ctx, d, next)
}

// checkLost calls exhausted if no device is expected to recover, neither in this process nor after the restart that one waits for.
func (s *Set) checkLost(exhausted func()) {
	if s.allLost() && !slices.ContainsFunc(s.All, func(d *Device) bool { return d.fault.waitsForRestart() }) {
		exhausted()
	}
}

// allLost reports whether no device is expected to recover in this process.
func (s *Set) allLost() bool {
	return !slices.ContainsFunc(s.All, func(d *Device) bool { return !d.fault.isLost() })
}
