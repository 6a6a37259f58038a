// Package progress is how long work says how far it is, whoever listens.
package progress

// Step is one part of the work. Count and Note may be called from any goroutine.
type Step interface {
	Count(done, total int)
	Note(text string) // where the work is, in words
	Close()
}

// Reporter hears that a part of the work begins, which is named after what it counts. nil hears nothing.
type Reporter func(name string) Step

// Begin begins a part.
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
