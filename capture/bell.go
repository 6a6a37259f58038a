package capture

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wakeup wakes the goroutine that gathers frames. Its thread waits in the kernel and is woken there by the thread that rings. A channel would
// have Go's scheduler find a thread for the goroutine first, an ordinary one, which waits for a CPU where all are busy before it passes the
// goroutine on to the thread that it is locked to. The zero value is ready; it is not copied.
type Wakeup struct{ state atomic.Uint32 }

// The states of a bell.
const (
	idle uint32 = iota
	signalled          // since the last Wait
	waiting
)

// Of futex(2), private to this process.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// Signal has the next or the current Wait return. It never blocks, and any goroutine may call it; rings that nobody waited for are one.
func (b *Wakeup) Signal() {
	if b.state.Swap(signalled) == waiting {
		_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, b.address(), futexWake, 1, 0, 0, 0) // nobody there is no error
	}
}

// Wait returns when the bell has been rung since the last Wait. One goroutine at a time calls it; its thread is blocked.
func (b *Wakeup) Wait() {
	for !b.state.CompareAndSwap(signalled, idle) {
		b.state.CompareAndSwap(idle, waiting)
		// It returns at once when the state is another one, and early after a signal.
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, b.address(), futexWait, uintptr(waiting), 0, 0, 0)
	}
}

func (b *Wakeup) address() uintptr { return uintptr(unsafe.Pointer(&b.state)) }
