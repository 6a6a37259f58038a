package capture

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wakeup wakes the goroutine that gathers frames. The waiting thread blocks in futex(2) and is woken directly by the signalling thread.
// With a channel Go's scheduler would first need an ordinary thread to run the goroutine, and that thread waits for a CPU when all are busy
// before it hands over to the thread that the goroutine is locked to. The zero value is ready; it must not be copied.
type Wakeup struct{ state atomic.Uint32 }

// The states of a Wakeup.
const (
	idle      uint32 = iota
	signalled        // since the last Wait
	waiting
)

// Operations of futex(2), private to this process.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// Signal makes the current or the next Wait return. It never blocks and is safe for concurrent use; signals without a Wait in between count
// as one.
func (b *Wakeup) Signal() {
	if b.state.Swap(signalled) == waiting {
		_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, b.address(), futexWake, 1, 0, 0, 0) // waking no thread is not an error
	}
}

// Wait returns once the Wakeup has been signalled since the last Wait. It blocks its thread; one goroutine at a time may call it.
func (b *Wakeup) Wait() {
	for !b.state.CompareAndSwap(signalled, idle) {
		b.state.CompareAndSwap(idle, waiting)
		// Returns immediately if the state has changed, and early after a Unix signal.
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, b.address(), futexWait, uintptr(waiting), 0, 0, 0)
	}
}

func (b *Wakeup) address() uintptr { return uintptr(unsafe.Pointer(&b.state)) }
