// Package clock reads the clock of frames.
package clock

import "golang.org/x/sys/unix"

// Monotonic returns CLOCK_MONOTONIC in nanoseconds, the clock of frames, engine.Timing and timestamps taken in C.
func Monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // Linux has had this clock since 2.6
	}
	return now.Nano()
}
