package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// member is one camera of the fleet: its configuration, its capture side, and its place in the frame loop.
type member struct {
	config  config.Camera
	capture *capture.Camera
	place   pipeline.Camera
}

// fleet is the cameras of a run. New ones may come and old ones go while it runs.
type fleet struct {
	// make builds a member from its configuration, around the capture side of an earlier one where that is not nil.
	make   func(config.Camera, *capture.Camera) (*member, error)
	logger *slog.Logger

	mu       sync.Mutex
	members  []*member
	ctx      context.Context // of the run; nil before Run
	running  int
	keep     bool          // a change is under way: the fleet has not ended although nobody runs
	ended    chan struct{} // closed when every camera has ended
	failures map[*capture.Camera]error
}

// Open makes the first cameras.
func (f *fleet) Open(cameras []config.Camera) error {
	f.ended, f.failures = make(chan struct{}), map[*capture.Camera]error{}
	for _, c := range cameras {
		m, err := f.make(c, nil)
		if err != nil {
			return fmt.Errorf("camera %s: %w", c.Name, err)
		}
		f.members = append(f.members, m)
	}
	return nil
}

// Run starts capturing; ctx ends it.
func (f *fleet) Run(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = ctx
	for _, m := range f.members {
		f.start(m)
	}
}

// start runs one camera in a goroutine of its own. The lock is held.
func (f *fleet) start(m *member) {
	f.running++
	go func() {
		err := m.capture.Run(f.ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		if err != nil {
			f.failures[m.capture] = fmt.Errorf("camera %s: %w", m.config.Name, err)
		}
		f.running--
		f.checkEnd()
	}()
}

// checkEnd closes ended when nobody runs and nobody will. The lock is held.
func (f *fleet) checkEnd() {
	if f.running == 0 && !f.keep {
		select {
		case <-f.ended:
		default:
			close(f.ended)
		}
	}
}

// Members are the cameras as they are now.
func (f *fleet) Members() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.members)
}

// Places are the cameras' places in the frame loop.
func (f *fleet) Places() []pipeline.Camera {
	var places []pipeline.Camera
	for _, m := range f.Members() {
		places = append(places, m.place)
	}
	return places
}

// Failures are the errors that cameras of the fleet have ended with.
func (f *fleet) Failures() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, m := range f.members {
		errs = append(errs, f.failures[m.capture])
	}
	return errors.Join(errs...)
}

// Change makes the fleet what cameras say. Members whose configuration is the same go on undisturbed, unless every one is to be made anew; where
// only the use of the pictures changes, the capture side goes on. New cameras are started, and the others are closed once arrange has taken them
// out of the frame loop. When a member cannot be made, nothing changes. kept is how many capture sides went on.
func (f *fleet) Change(cameras []config.Camera, anew bool, arrange func([]pipeline.Camera) error) (kept int, err error) {
	f.mu.Lock()
	old := slices.Clone(f.members)
	f.keep = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.keep = false
		f.checkEnd()
	}()
	var next, fresh []*member
	for _, c := range cameras {
		same := slices.IndexFunc(old, func(m *member) bool { return reflect.DeepEqual(m.config, c) })
		if same >= 0 && !anew {
			next = append(next, old[same])
			continue
		}
		var running *capture.Camera
		if alike := slices.IndexFunc(old, func(m *member) bool { return m.captures(c) }); alike >= 0 {
			running = old[alike].capture
		}
		m, err := f.make(c, running)
		if err != nil {
			return 0, errors.Join(fmt.Errorf("camera %s: %w", c.Name, err), closeAll(fresh))
		}
		next = append(next, m)
		if running == nil {
			fresh = append(fresh, m)
		}
	}
	places := make([]pipeline.Camera, len(next))
	for i, m := range next {
		places[i] = m.place
	}
	if err := arrange(places); err != nil {
		return 0, errors.Join(err, closeAll(fresh))
	}
	var gone []*member
	for _, m := range old {
		if !slices.ContainsFunc(next, func(other *member) bool { return other.capture == m.capture }) {
			gone = append(gone, m)
		}
	}
	if err := closeAll(gone); err != nil { // before the new ones start: one device may be in both
		f.logger.Warn("a camera that is no longer there closed with an error", "error", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range gone {
		delete(f.failures, m.capture)
	}
	f.members = next
	for _, m := range fresh {
		f.start(m)
	}
	return len(next) - len(fresh), nil
}

// captures reports whether the member's capture side does what c asks of one.
func (m *member) captures(c config.Camera) bool {
	return m.config.Name == c.Name && m.config.URI == c.URI && m.config.Stall == c.Stall
}

func closeAll(members []*member) error {
	var errs []error
	for _, m := range members {
		errs = append(errs, m.capture.Close())
	}
	return errors.Join(errs...)
}

// Close ends all cameras.
func (f *fleet) Close() error { return closeAll(f.Members()) }
