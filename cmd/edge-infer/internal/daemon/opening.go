package daemon

import (
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/systemd"
)

const (
	openingPause = 5 * time.Second // between two signs of life while a run opens
	// openingLimit is the longest time between two progress reports while opening, for example of an engine plan build.
	openingLimit = 2 * time.Minute
)

// opening keeps the service manager waiting while a run is opened, which takes as long as building its engine plans: that is neither a
// failed start nor a hanging process.
type opening struct {
	service *systemd.Service
	steps   progress.Reporter // hears of the work too
	onText  func(text string) // and this of where it is

	mu    sync.Mutex
	work  int       // pieces under way
	since time.Time // of the end of the last one
	text  string    // where the newest one is
	over  bool      // the run is open: what is still opened in the background is no reason to wait
}

// Watch notifies the watchdog until stop is called.
func (o *opening) Watch() (stop func()) {
	o.since = time.Now()
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(openingPause)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				o.notify()
			}
		}
	}()
	return func() {
		close(ended)
		<-done
		o.mu.Lock()
		o.over = true
		o.mu.Unlock()
	}
}

// notify notifies the watchdog once, unless there was no progress for too long.
func (o *opening) notify() {
	o.mu.Lock()
	text, alive := o.text, !o.over && (o.work > 0 || time.Since(o.since) < openingLimit)
	o.mu.Unlock()
	if !alive {
		return
	}
	if text != "" {
		_ = o.service.Status("%s", text)
	}
	_ = o.service.Working(4 * openingPause)
}

// Begin is a progress.Reporter.
func (o *opening) Begin(name string) progress.Step {
	o.mu.Lock()
	o.work++
	o.text = name
	o.mu.Unlock()
	o.notify()
	o.show(name)
	return &openingStep{Step: o.steps.Begin(name), opening: o}
}

// show passes on where the work is, while the run is being opened.
func (o *opening) show(text string) {
	o.mu.Lock()
	over := o.over
	o.mu.Unlock()
	if !over {
		o.onText(text)
	}
}

// openingStep is one piece of work.
type openingStep struct {
	progress.Step
	opening *opening
}

// Note implements progress.Step.
func (s *openingStep) Note(text string) {
	s.opening.mu.Lock()
	s.opening.text = text
	s.opening.mu.Unlock()
	s.opening.show(text)
	s.Step.Note(text)
}

// Close implements progress.Step.
func (s *openingStep) Close() {
	s.opening.mu.Lock()
	s.opening.work--
	s.opening.since, s.opening.text = time.Now(), ""
	s.opening.mu.Unlock()
	s.Step.Close()
}
