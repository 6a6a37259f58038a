package process

import (
	"os"
	"runtime"
)

// DefaultProcessors is the GOMAXPROCS for a process with a frame loop: twice the CPUs, and 4 more. A goroutine that returns from C or from
// the kernel needs a processor; if goroutines compute on all of them it waits for the end of a time slice, which takes milliseconds. The
// operating system's time slices are finer. The 4 are for spinning threads that are preempted while they hold a processor: without them a
// loaded machine of two CPUs runs out of processors.
func DefaultProcessors() int { return 2*runtime.NumCPU() + 4 }

// SetDefaultProcessors sets GOMAXPROCS at the start of the program, before the configuration is read, unless it is in the environment.
func SetDefaultProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(DefaultProcessors())
	}
}
