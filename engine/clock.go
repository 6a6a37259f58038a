package engine

import "golang.org/x/sys/unix"

// Monotonic reads CLOCK_MONOTONIC in nanoseconds, the clock of frames, of Timing and of time stamps that are taken in C.
func Monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // Linux has had this clock since 2.6
	}
	return now.Nano()
}
