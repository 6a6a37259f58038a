// Package camera keeps the cameras of a run: it starts them, changes which there are while they run, and knows when all have ended.
package camera

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

// Camera is one camera of a run: its configuration, its capture side, and its place in the frame loop.
type Camera struct {
	Config  config.Camera
	Capture *capture.Camera
	Place   pipeline.Camera
}

// captures reports whether the capture side does what another configuration asks of one.
func (c *Camera) captures(other config.Camera) bool {
	return c.Config.Name == other.Name && c.Config.URI == other.URI && c.Config.Stall == other.Stall &&
		c.Config.MaxPixels == other.MaxPixels && reflect.DeepEqual(c.Config.Model, other.Model) &&
		reflect.DeepEqual(c.Config.Tile, other.Tile) && reflect.DeepEqual(c.Config.Overlap, other.Overlap)
}

// Set is the cameras of a run. New ones may come and old ones go while it is under way.
type Set struct {
	// Make makes a camera of its configuration, around the capture side of an earlier one where that is not nil.
	Make   func(config.Camera, *capture.Camera) (*Camera, error)
	Logger *slog.Logger

	mu       sync.Mutex
	all      []*Camera
	ctx      context.Context // ends them all; nil before Run
	stop     context.CancelFunc
	last     map[string]capture.Stats // as they were when they were stopped; nil before
	running  int
	keep     bool          // a change is under way: they have not ended although none runs
	ended    chan struct{} // closed when every camera has ended
	failures map[*capture.Camera]error
}

// Open makes the first cameras.
func (s *Set) Open(wanted []config.Camera) error {
	s.ended, s.failures = make(chan struct{}), map[*capture.Camera]error{}
	for _, w := range wanted {
		c, err := s.Make(w, nil)
		if err != nil {
			return fmt.Errorf("camera %s: %w", w.Name, err)
		}
		s.all = append(s.all, c)
	}
	return nil
}

// Run starts capturing; Stop or ctx end it.
func (s *Set) Run(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.stop = context.WithCancel(ctx)
	for _, c := range s.all {
		s.start(c)
	}
}

// Stop ends capturing. Last then says how the cameras were before.
func (s *Set) Stop() {
	last := map[string]capture.Stats{}
	for _, c := range s.All() {
		last[c.Config.Name] = c.Capture.Stats()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = last
	s.stop()
}

// Last is how a camera was before it was stopped; only its counters have moved on since.
func (s *Set) Last(name string) capture.Stats {
	now := s.Captured(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, stopped := s.last[name]; stopped {
		now.State, now.Since, now.Reason, now.NextTry, now.Tries = before.State, before.Since, before.Reason, before.NextTry, before.Tries
	}
	return now
}

// start runs one camera in a goroutine of its own. The lock is held.
func (s *Set) start(c *Camera) {
	s.running++
	go func() {
		err := c.Capture.Run(s.ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.failures[c.Capture] = fmt.Errorf("camera %s: %w", c.Config.Name, err)
		}
		s.running--
		s.checkEnd()
	}()
}

// checkEnd closes ended when none runs and none will. The lock is held.
func (s *Set) checkEnd() {
	if s.running == 0 && !s.keep {
		select {
		case <-s.ended:
		default:
			close(s.ended)
		}
	}
}

// All are the cameras as they are now.
func (s *Set) All() []*Camera {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Places are the cameras' places in the frame loop.
func (s *Set) Places() []pipeline.Camera { return places(s.All()) }

func places(all []*Camera) []pipeline.Camera {
	var places []pipeline.Camera
	for _, c := range all {
		places = append(places, c.Place)
	}
	return places
}

// Captured is what a camera has captured; zero when it has just gone.
func (s *Set) Captured(name string) capture.Stats {
	for _, c := range s.All() {
		if c.Config.Name == name {
			return c.Capture.Stats()
		}
	}
	return capture.Stats{Name: name}
}

// Failures are the errors that cameras which are still there have ended with.
func (s *Set) Failures() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.all {
		errs = append(errs, s.failures[c.Capture])
	}
	return errors.Join(errs...)
}

// Change makes the cameras those that are wanted. One whose configuration is the same goes on undisturbed, unless every one is to be made
// anew; where only the use of the images changes, the capture side goes on. New cameras are started, and the others are closed once
// arrange has taken them out of the frame loop. When a camera cannot be made, nothing changes. kept is how many capture sides went on.
func (s *Set) Change(wanted []config.Camera, anew bool, arrange func([]pipeline.Camera) error) (kept int, err error) {
	s.mu.Lock()
	old := slices.Clone(s.all)
	s.keep = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keep = false
		s.checkEnd()
	}()
	next, fresh, err := s.plan(wanted, old, anew)
	if err == nil {
		err = arrange(places(next))
	}
	if err != nil {
		return 0, errors.Join(err, closeAll(fresh))
	}
	var gone []*Camera
	for _, c := range old {
		if !slices.ContainsFunc(next, func(other *Camera) bool { return other.Capture == c.Capture }) {
			gone = append(gone, c)
		}
	}
	if err := closeAll(gone); err != nil { // before the new ones start: one device may be in both
		s.Logger.Warn("a camera that is no longer there closed with an error", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range gone {
		delete(s.failures, c.Capture)
	}
	s.all = next
	for _, c := range fresh {
		s.start(c)
	}
	return len(next) - len(fresh), nil
}

// plan gives the cameras that are wanted, out of the old ones where they fit; fresh are those of them that capture anew, also with an
// error.
func (s *Set) plan(wanted []config.Camera, old []*Camera, anew bool) (next, fresh []*Camera, err error) {
	for _, w := range wanted {
		same := slices.IndexFunc(old, func(c *Camera) bool { return reflect.DeepEqual(c.Config, w) })
		if same >= 0 && !anew {
			next = append(next, old[same])
			continue
		}
		var running *capture.Camera
		if alike := slices.IndexFunc(old, func(c *Camera) bool { return c.captures(w) }); alike >= 0 {
			running = old[alike].Capture
		}
		c, err := s.Make(w, running)
		if err != nil {
			return nil, fresh, fmt.Errorf("camera %s: %w", w.Name, err)
		}
		next = append(next, c)
		if running == nil {
			fresh = append(fresh, c)
		}
	}
	return next, fresh, nil
}

func closeAll(all []*Camera) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Capture.Close())
	}
	return errors.Join(errs...)
}

// Ended is closed when every camera has ended.
func (s *Set) Ended() <-chan struct{} { return s.ended }

// Close ends all cameras.
func (s *Set) Close() error { return closeAll(s.All()) }
