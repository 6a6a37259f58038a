package process

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	loopReview = 200 * time.Millisecond // between two measurements of a frame loop's CPU time
	busyLoop   = 0.5                    // the share of a period from which on it loses its priority
	loopRest   = time.Minute            // for how long
)

// loopThread is the scheduling of the thread that it is made on.
type loopThread struct {
	capture      *ThreadScheduling
	first, usual *unix.SchedAttr // with its priority, and as the others
	checked      time.Time
	used         time.Duration
	rest         time.Time // until then it runs as the others
}

// SetupLoopThread gives the calling thread, to which a frame loop's goroutine is locked, a priority below that of SetupCaptureThread, on
// any CPU. A loop works for a fraction of a millisecond at a time and sleeps while the network computes, so it starves no other thread. A
// loop that does not sleep, because it polls a GPU or reads a file, gets ordinary scheduling for a while: it would occupy a CPU, and the
// kernel stops such a thread for 50 ms of every second, see sched(7). The thread calls the result once per iteration.
func (c *ThreadScheduling) SetupLoopThread() (review func()) {
	if c == nil || c.priority == 0 {
		return func() {}
	}
	usual, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		c.log(noPriority, err.Error())
		return func() {}
	}
	t := &loopThread{capture: c, first: fifo(c.loopPriority()), usual: usual, checked: time.Now(), used: threadTime()}
	if c.schedule(t.first) && c.loops.CompareAndSwap(false, true) {
		c.logger.Info("frame loops of GPUs have priority", "scheduling", fmt.Sprintf("SCHED_FIFO %d", c.loopPriority()))
	}
	return func() { t.review(time.Now(), threadTime) }
}

// review takes the time, and how long the thread had a CPU.
func (t *loopThread) review(now time.Time, had func() time.Duration) {
	passed := now.Sub(t.checked)
	if passed < loopReview {
		return
	}
	used := had()
	share := float64(used-t.used) / float64(passed)
	t.checked, t.used = now, used
	switch resting := !t.rest.IsZero(); {
	case resting && now.After(t.rest):
		t.rest = time.Time{}
		t.capture.schedule(t.first)
	case !resting && share > busyLoop:
		t.rest = now.Add(loopRest)
		t.capture.schedule(t.usual)
	}
}

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // every kernel has this clock
	}
	return time.Duration(t.Nano())
}

func (c *ThreadScheduling) loopPriority() int { return max(c.priority-1, 1) }
