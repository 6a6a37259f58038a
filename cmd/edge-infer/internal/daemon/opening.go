package daemon

import (
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/systemd"
)

const (
	openingPause = 5 * time.Second // between two signs of life while a run opens
	// openingLimit is how long opening may take between two pieces of work that say how far they are, such as building an engine plan.
	openingLimit = 2 * time.Minute
)

// opening tells the service manager that a run is being opened, which takes as long as the engine plans do that are built for it: neither
// is that a start that has failed, nor a process that hangs where this one took the place of another.
type opening struct {
	service *systemd.Service
	steps   progress.Reporter // hears of the work too
	tell    func(text string) // and this of where it is

	mu    sync.Mutex
	work  int       // pieces under way
	since time.Time // of the end of the last one
	text  string    // where the newest one is
}

// Watch gives signs of life until the returned function is called.
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
				o.sign()
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

// sign gives one sign of life, unless nothing has been heard of the work for too long.
func (o *opening) sign() {
	o.mu.Lock()
	text, alive := o.text, o.work > 0 || time.Since(o.since) < openingLimit
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
	o.sign()
	o.tell(name)
	return &openingStep{Step: o.steps.Begin(name), opening: o}
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
	s.opening.tell(text)
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
