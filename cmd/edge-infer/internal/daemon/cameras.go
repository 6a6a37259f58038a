package daemon

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

// camera is one camera of a run: its configuration, its capture side, and its place in the frame loop.
type camera struct {
	config  config.Camera
	capture *capture.Camera
	place   pipeline.Camera
}

// captures reports whether the capture side does what another configuration asks of one.
func (c *camera) captures(other config.Camera) bool {
	return c.config.Name == other.Name && c.config.URI == other.URI && c.config.Stall == other.Stall &&
		c.config.MaxPixels == other.MaxPixels
}

// cameras are those of a run. New ones may come and old ones go while it is under way.
type cameras struct {
	// make makes a camera of its configuration, around the capture side of an earlier one where that is not nil.
	make   func(config.Camera, *capture.Camera) (*camera, error)
	logger *slog.Logger

	mu       sync.Mutex
	all      []*camera
	ctx      context.Context // ends them all; nil before Run
	stop     context.CancelFunc
	last     map[string]capture.Stats // as they were when they were stopped; nil before
	running  int
	keep     bool          // a change is under way: they have not ended although none runs
	ended    chan struct{} // closed when every camera has ended
	failures map[*capture.Camera]error
}

// Open makes the first cameras.
func (l *cameras) Open(wanted []config.Camera) error {
	l.ended, l.failures = make(chan struct{}), map[*capture.Camera]error{}
	for _, w := range wanted {
		c, err := l.make(w, nil)
		if err != nil {
			return fmt.Errorf("camera %s: %w", w.Name, err)
		}
		l.all = append(l.all, c)
	}
	return nil
}

// Run starts capturing; Stop or ctx end it.
func (l *cameras) Run(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.stop = context.WithCancel(ctx)
	for _, c := range l.all {
		l.start(c)
	}
}

// Stop ends capturing. Last then says how the cameras were before.
func (l *cameras) Stop() {
	last := map[string]capture.Stats{}
	for _, c := range l.All() {
		last[c.config.Name] = c.capture.Stats()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = last
	l.stop()
}

// Last is how a camera was before it was stopped; only its counters have moved on since.
func (l *cameras) Last(name string) capture.Stats {
	now := l.Captured(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, stopped := l.last[name]; stopped {
		now.State, now.Since, now.Reason, now.NextTry, now.Tries = before.State, before.Since, before.Reason, before.NextTry, before.Tries
	}
	return now
}

// start runs one camera in a goroutine of its own. The lock is held.
func (l *cameras) start(c *camera) {
	l.running++
	go func() {
		err := c.capture.Run(l.ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			l.failures[c.capture] = fmt.Errorf("camera %s: %w", c.config.Name, err)
		}
		l.running--
		l.checkEnd()
	}()
}

// checkEnd closes ended when none runs and none will. The lock is held.
func (l *cameras) checkEnd() {
	if l.running == 0 && !l.keep {
		select {
		case <-l.ended:
		default:
			close(l.ended)
		}
	}
}

// All are the cameras as they are now.
func (l *cameras) All() []*camera {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// Places are the cameras' places in the frame loop.
func (l *cameras) Places() []pipeline.Camera { return places(l.All()) }

func places(all []*camera) []pipeline.Camera {
	var places []pipeline.Camera
	for _, c := range all {
		places = append(places, c.place)
	}
	return places
}

// Captured is what a camera has captured; zero when it has just gone.
func (l *cameras) Captured(name string) capture.Stats {
	for _, c := range l.All() {
		if c.config.Name == name {
			return c.capture.Stats()
		}
	}
	return capture.Stats{Name: name}
}

// Failures are the errors that cameras which are still there have ended with.
func (l *cameras) Failures() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, c := range l.all {
		errs = append(errs, l.failures[c.capture])
	}
	return errors.Join(errs...)
}

// Change makes the cameras those that are wanted. One whose configuration is the same goes on undisturbed, unless every one is to be made
// anew; where only the use of the pictures changes, the capture side goes on. New cameras are started, and the others are closed once
// arrange has taken them out of the frame loop. When a camera cannot be made, nothing changes. kept is how many capture sides went on.
func (l *cameras) Change(wanted []config.Camera, anew bool, arrange func([]pipeline.Camera) error) (kept int, err error) {
	l.mu.Lock()
	old := slices.Clone(l.all)
	l.keep = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.keep = false
		l.checkEnd()
	}()
	next, fresh, err := l.plan(wanted, old, anew)
	if err == nil {
		err = arrange(places(next))
	}
	if err != nil {
		return 0, errors.Join(err, closeAll(fresh))
	}
	var gone []*camera
	for _, c := range old {
		if !slices.ContainsFunc(next, func(other *camera) bool { return other.capture == c.capture }) {
			gone = append(gone, c)
		}
	}
	if err := closeAll(gone); err != nil { // before the new ones start: one device may be in both
		l.logger.Warn("a camera that is no longer there closed with an error", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range gone {
		delete(l.failures, c.capture)
	}
	l.all = next
	for _, c := range fresh {
		l.start(c)
	}
	return len(next) - len(fresh), nil
}

// plan gives the cameras that are wanted, out of the old ones where they fit; fresh are those of them that capture anew, also with an
// error.
func (l *cameras) plan(wanted []config.Camera, old []*camera, anew bool) (next, fresh []*camera, err error) {
	for _, w := range wanted {
		same := slices.IndexFunc(old, func(c *camera) bool { return reflect.DeepEqual(c.config, w) })
		if same >= 0 && !anew {
			next = append(next, old[same])
			continue
		}
		var running *capture.Camera
		if alike := slices.IndexFunc(old, func(c *camera) bool { return c.captures(w) }); alike >= 0 {
			running = old[alike].capture
		}
		c, err := l.make(w, running)
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

func closeAll(all []*camera) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.capture.Close())
	}
	return errors.Join(errs...)
}

// Close ends all cameras.
func (l *cameras) Close() error { return closeAll(l.All()) }
