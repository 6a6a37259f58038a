package process

import (
	"os"
	"runtime"
)

// Processors is how many processors Go should have where a frame loop runs (GOMAXPROCS): twice the CPUs, and 4 at least. A goroutine that
// comes back from waiting in C needs one; where goroutines compute on all of them it waits for one's time slice to end, which takes
// milliseconds. The operating system shares the CPUs out in finer slices.
func Processors() int { return max(2*runtime.NumCPU(), 4) }

// Begin gives Go its processors at the start of the program, before any setting is known. GOMAXPROCS in the environment stays.
func Begin() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(Processors())
	}
}
