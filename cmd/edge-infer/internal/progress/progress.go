// Package progress lets long tasks report their progress.
package progress

// Step is one part of a task. Count and Note may be called from any goroutine.
type Step interface {
	Count(done, total int)
	Note(text string) // describes the current state
	Close()
}

// Reporter starts a step, named after what it counts. A nil Reporter discards everything.
type Reporter func(name string) Step

// Begin starts a step.
func (r Reporter) Begin(name string) Step {
	if r == nil {
		return silent{}
	}
	return r(name)
}

type silent struct{}

func (silent) Count(int, int) {}
func (silent) Note(string)    {}
func (silent) Close()         {}
