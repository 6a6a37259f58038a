package main

import (
	"context"
	"errors"
	"fmt"
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
	// make builds a member from its configuration.
	make func(config.Camera) (*member, error)

	mu       sync.Mutex
	members  []*member
	ctx      context.Context // of the run; nil before Run
	running  int
	keep     bool          // a change is under way: the fleet has not ended although nobody runs
	ended    chan struct{} // closed when every camera has ended
	failures []error
}

// Open makes the first cameras.
func (f *fleet) Open(cameras []config.Camera) error {
	f.ended = make(chan struct{})
	for _, c := range cameras {
		m, err := f.make(c)
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
			f.failures = append(f.failures, fmt.Errorf("camera %s: %w", m.config.Name, err))
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

// Failures are the errors that cameras have ended with.
func (f *fleet) Failures() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.failures...)
}

// Change makes the fleet what cameras say: members whose configuration is the same go on undisturbed, new ones are started, and the others are
// closed once arrange has taken them out of the frame loop. When a member cannot be made, nothing changes.
func (f *fleet) Change(cameras []config.Camera, arrange func([]pipeline.Camera) error) (kept int, err error) {
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
		if same >= 0 {
			next = append(next, old[same])
			continue
		}
		m, err := f.make(c)
		if err != nil {
			for _, m := range fresh {
				_ = m.capture.Close()
			}
			return 0, fmt.Errorf("camera %s: %w", c.Name, err)
		}
		next, fresh = append(next, m), append(fresh, m)
	}
	f.mu.Lock()
	f.members = next
	places := make([]pipeline.Camera, len(next))
	for i, m := range next {
		places[i] = m.place
	}
	f.mu.Unlock()
	if err := arrange(places); err != nil {
		return 0, err
	}
	var errs []error
	for _, m := range old {
		if !slices.Contains(next, m) {
			errs = append(errs, m.capture.Close())
		}
	}
	f.mu.Lock()
	for _, m := range fresh {
		f.start(m)
	}
	f.mu.Unlock()
	return len(next) - len(fresh), errors.Join(errs...)
}

// Close ends all cameras.
func (f *fleet) Close() error {
	var errs []error
	for _, m := range f.Members() {
		errs = append(errs, m.capture.Close())
	}
	return errors.Join(errs...)
}
