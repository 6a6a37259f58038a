package process

import (
	"os"
	"runtime"
)

// DefaultProcessors is how many processors Go should have where a frame loop runs (GOMAXPROCS): twice the CPUs, and 4 more. A goroutine
// that comes back from waiting in C or in the kernel needs one; where goroutines compute on all of them it waits for one's time slice to
// end, which takes milliseconds. The operating system shares the CPUs out in finer slices. The 4 are for threads that look for work for a
// moment and are set aside while they hold one: without them a loaded machine of two CPUs has none left time and again.
func DefaultProcessors() int { return 2*runtime.NumCPU() + 4 }

// SetDefaultProcessors gives Go its processors at the start of the program, before any setting is known. GOMAXPROCS in the environment
// stays.
func SetDefaultProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(DefaultProcessors())
	}
}
