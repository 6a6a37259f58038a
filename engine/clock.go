package engine

import "golang.org/x/sys/unix"

// Monotonic returns CLOCK_MONOTONIC in nanoseconds: the clock of frames, of Timing and of timestamps taken in C.
func Monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // Linux has had this clock since 2.6
	}
	return now.Nano()
}
