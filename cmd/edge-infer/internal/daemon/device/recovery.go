package device

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// fault is what is wrong with the predictor of a device. Methods may be called from any goroutine.
type fault struct {
	reports chan error // holds the newest error of the frame loop

	mu   sync.Mutex
	err  error     // nil while the predictor works
	lost bool      // another attempt is not expected to help
	next time.Time // of the next attempt to open a predictor; zero for none
}

// report passes on why the frame loop stopped using its predictor.
func (f *fault) report(err error) { f.reports <- err }

func (f *fault) set(err error, lost bool, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.lost, f.next = err, lost, next
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
	}
	return fmt.Sprintf("network failed, opened again at %s: %v", f.next.Format(time.TimeOnly), f.err)
}

// supervise opens the predictor of a device again whenever it is at fault or could not be opened yet, until ctx ends. The first predictor's
// contradiction of its layout is final: file or settings are wrong. exhausted is called when no device of the set is expected to recover.
func (s *Set) supervise(ctx context.Context, d *Device, exhausted func()) {
	cameras := d.cameras()
	if d.Waits() {
		d.fault.report(d.fault.err)
	}
	failures := 0         // of predictors in a row
	inferred := uint64(0) // frames until the last fault
	reopened := false
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case err = <-d.fault.reports:
		}
		if now := d.inferred(); now > inferred {
			inferred = now
			failures = 0
		}
		what := "network failed"
		if d.Waits() {
			what = "network not opened"
		}
		s.logger.Error(what, "cameras", cameras, "error", err)
		if errors.As(err, new(*predict.Contradiction)) && !reopened {
			d.fault.set(err, true, time.Time{})
			s.checkLost(exhausted)
			continue
		}
		for err != nil {
			pause := s.reopening.After(failures)
			d.fault.set(err, failures > 0, time.Now().Add(pause))
			s.checkLost(exhausted)
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			failures++
			if err = s.replace(ctx, d); err != nil && ctx.Err() == nil {
				s.logger.Warn("network not opened again", "cameras", cameras, "error", err)
			}
		}
		reopened = true
		d.fault.set(nil, false, time.Time{})
		s.logger.Info("network opened", "cameras", cameras)
	}
}

// defaultReopening is the pause before a failed network is opened again.
func defaultReopening() backoff.Exponential {
	return backoff.Exponential{Min: 2 * time.Second, Max: 2 * time.Minute}
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
	next, err := s.reopen(ctx, d)
	if err != nil {
		return err
	}
	return s.Swap(ctx, d, next)
}

// checkLost calls exhausted if no device is expected to recover.
func (s *Set) checkLost(exhausted func()) {
	for _, d := range s.All {
		if !d.fault.isLost() {
			return
		}
	}
	exhausted()
}
