// Package camera starts and stops the cameras of a run, changes them while it runs, and reports when all have ended.
package camera

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// Camera is one camera: what it runs by, its capture side, and its part in the frame loop.
type Camera struct {
	Site    site.Camera
	Capture *capture.Camera
	Loop    pipeline.Camera
}

// Ring returns the camera's own access units for what leaves the process: clips and live video. It is nil while there are none, and always
// for a camera with private regions or labels, because they show everything.
func (c *Camera) Ring() *capture.Ring {
	if c.Site.Privacy.Enabled() {
		return nil
	}
	return c.Capture.Ring()
}

// Set is the cameras of a run. Cameras may be added and removed while it runs.
type Set struct {
	// Make returns a camera, with the capture side of an earlier one if that is not nil.
	Make func(site.Camera, *capture.Camera) (*Camera, error)
	// Settings returns the settings of a camera that is otherwise unchanged.
	Settings func(*site.Camera) *pipeline.Settings
	Logger   *slog.Logger

	mu       sync.Mutex
	all      []*Camera
	ctx      context.Context // ends them all; nil before Run
	stop     context.CancelFunc
	last     map[string]capture.Stats // when they were stopped; nil before
	running  int
	keep     bool          // a change is under way: the set has not ended although no camera runs
	ended    chan struct{} // closed when every camera has ended
	failures map[*capture.Camera]error
}

// Open makes the first cameras.
func (s *Set) Open(wanted []site.Camera) error {
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

// Stop ends capturing. Last returns the state of the cameras before it.
func (s *Set) Stop() {
	last := map[string]capture.Stats{}
	for _, c := range s.All() {
		last[c.Site.Name] = c.Capture.Stats()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = last
	s.stop()
}

// Last returns the state of a camera before Stop, with the counters as they are now.
func (s *Set) Last(name string) capture.Stats {
	now := s.Captured(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, stopped := s.last[name]; stopped {
		now.State, now.Since = before.State, before.Since
		now.Reason, now.NextTry = before.Reason, before.NextTry
		now.Tries = before.Tries
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
			s.failures[c.Capture] = fmt.Errorf("camera %s: %w", c.Site.Name, err)
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

// All returns the current cameras.
func (s *Set) All() []*Camera {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// InLoop returns the cameras' parts in the frame loop.
func (s *Set) InLoop() []pipeline.Camera { return inLoop(s.All()) }

func inLoop(all []*Camera) []pipeline.Camera {
	var cameras []pipeline.Camera
	for _, c := range all {
		cameras = append(cameras, c.Loop)
	}
	return cameras
}

// Captured returns the capture statistics of a camera; zero if it was just removed.
func (s *Set) Captured(name string) capture.Stats {
	for _, c := range s.All() {
		if c.Site.Name == name {
			return c.Capture.Stats()
		}
	}
	return capture.Stats{Name: name}
}

// Units returns the newest access units of a camera; nil if it has none.
func (s *Set) Units(name string) *capture.Ring {
	for _, c := range s.All() {
		if c.Site.Name == name {
			return c.Ring()
		}
	}
	return nil
}

// Failures returns the errors of current cameras that have ended.
func (s *Set) Failures() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.all {
		errs = append(errs, s.failures[c.Capture])
	}
	return errors.Join(errs...)
}

// Change replaces the cameras. A camera that is the same goes on undisturbed, with other settings perhaps; if only the use of its images
// changes, its capture side goes on. New cameras are started, and removed ones are closed after arrange has taken them out of the frame
// loop. If a camera cannot be made, nothing changes. kept is the number of capture sides that went on.
func (s *Set) Change(wanted []site.Camera, arrange func([]pipeline.Camera) error) (kept int, err error) {
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
	next, fresh, err := s.plan(wanted, old)
	if err == nil {
		err = arrange(inLoop(next))
	}
	if err != nil {
		return 0, errors.Join(err, closeAll(fresh))
	}
	var removed []*Camera
	for _, c := range old {
		if !slices.ContainsFunc(next, func(other *Camera) bool { return other.Capture == c.Capture }) {
			removed = append(removed, c)
		}
	}
	if err := closeAll(removed); err != nil { // before the new ones start: both may use one device
		s.Logger.Warn("a removed camera closed with an error", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range removed {
		delete(s.failures, c.Capture)
	}
	s.all = next
	for _, c := range next {
		c.Capture.SetRecord(c.Site.Record)
	}
	for _, c := range fresh {
		s.start(c)
	}
	return len(next) - len(fresh), nil
}

// Renew makes some of the cameras anew, with their capture sides, and passes them to arrange. An error changes nothing.
func (s *Set) Renew(renewed func(*Camera) bool, arrange func([]pipeline.Camera) error) error {
	next := s.All()
	var made []*Camera
	for i, c := range next {
		if !renewed(c) {
			continue
		}
		again, err := s.Make(c.Site, c.Capture)
		if err != nil {
			return fmt.Errorf("camera %s: %w", c.Site.Name, err)
		}
		next[i] = again
		made = append(made, again)
	}
	if err := arrange(inLoop(made)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = next
	return nil
}

// plan returns the wanted cameras, reusing old ones where they fit, and those that capture anew, also with an error.
func (s *Set) plan(wanted []site.Camera, old []*Camera) (next, fresh []*Camera, err error) {
	for i := range wanted {
		w := &wanted[i]
		same := slices.IndexFunc(old, func(c *Camera) bool { return c.Site.SamePlace(w) })
		if same >= 0 {
			c := &Camera{Site: *w, Capture: old[same].Capture, Loop: old[same].Loop}
			c.Loop.Settings = s.Settings(w)
			next = append(next, c)
			continue
		}
		var running *capture.Camera
		captures := slices.IndexFunc(old, func(c *Camera) bool { return c.Site.SameCapture(w) })
		if captures >= 0 {
			running = old[captures].Capture
		}
		c, err := s.Make(*w, running)
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
