package process

import (
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// usualPriority is the SCHED_FIFO priority of Auto: over every ordinary thread, under the kernel's own, which have 50.
const usualPriority = 10

// ThreadScheduling sets the scheduling of threads that wait for cameras and of frame loop threads. On a busy machine they have priority: an
// image that is fetched late from the driver has a late timestamp, or is lost if the driver has few buffers. Its methods may be called from
// any goroutine and do nothing for nil.
type ThreadScheduling struct {
	// Set by plan.
	cpus     *unix.CPUSet // nil for any
	priority int          // of SCHED_FIFO, 0 for ordinary scheduling
	auto     bool         // the priority is our own choice
	refusal  string       // why priority is 0 although it is wanted
	cpuCount int
	logger   *slog.Logger

	cameras         atomic.Int64
	refused         atomic.Pointer[string] // by the kernel
	captures, loops atomic.Bool            // threads of the kind got a priority, which the log has
}

// plan combines the configuration with the permissions of the process.
func (c *ThreadScheduling) plan(s Settings, root string) {
	if s.CaptureCPUs == Auto {
		if set, some := isolated(root); some {
			c.cpus = &set
		}
	} else if set, err := cpus(s.CaptureCPUs); err == nil {
		c.cpus = &set
	}
	wanted, err := strconv.Atoi(s.CapturePriority)
	switch {
	case s.CapturePriority == Off:
		return
	case err != nil:
		wanted, c.auto = usualPriority, true
	}
	if !mayFIFO(root, wanted) {
		c.refusal = fmt.Sprintf("SCHED_FIFO %d needs CAP_SYS_NICE or LimitRTPRIO=%d", wanted, wanted)
		return
	}
	c.priority = wanted
}

// try applies the scheduling on a thread that ends afterwards. In a container, the control group or a system call filter may refuse what
// the limits permit, and the log at the start must be right.
func (c *ThreadScheduling) try() {
	if c.priority == 0 {
		return
	}
	answer := make(chan error)
	go func() {
		runtime.LockOSThread()
		answer <- unix.SchedSetAttr(0, fifo(c.priority), 0)
	}()
	if err := <-answer; err != nil {
		c.refusal, c.priority = fmt.Sprintf("SCHED_FIFO %d refused: %v", c.priority, err), 0
	}
}

// SetCameraCount sets the number of cameras. With at least as many cameras as CPUs, Auto leaves the threads as they are: decoding with
// priority on every CPU would starve the network.
func (c *ThreadScheduling) SetCameraCount(cameras int) { c.cameras.Store(int64(cameras)) }

// crowded reports whether an automatic priority would starve other threads.
func (c *ThreadScheduling) crowded() bool { return c.auto && c.cameras.Load() >= int64(c.cpuCount) }

// SetupCaptureThread applies the plan to the calling thread, to which its goroutine is locked. What the kernel refuses stays as it was and
// is reported once, in the log and by State. Threads started by it later inherit the CPUs but not the priority.
func (c *ThreadScheduling) SetupCaptureThread() {
	if c == nil {
		return
	}
	if c.cpus != nil {
		if err := unix.SchedSetaffinity(0, c.cpus); err != nil {
			c.log("capture threads run on any CPU", fmt.Sprintf("CPUs %s refused: %v", list(c.cpus), err))
		}
	}
	if c.priority > 0 && !c.crowded() {
		if c.schedule(fifo(c.priority)) && c.captures.CompareAndSwap(false, true) {
			c.logger.Info("capture threads have priority", "scheduling", fmt.Sprintf("SCHED_FIFO %d", c.priority))
		}
	}
}

// fifo is SCHED_FIFO for a thread, and not for those that it starts.
func fifo(priority int) *unix.SchedAttr {
	return &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(priority), Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}
}

// schedule sets the scheduling of the calling thread and reports whether the kernel permits it.
func (c *ThreadScheduling) schedule(a *unix.SchedAttr) bool {
	err := unix.SchedSetAttr(0, a, 0)
	if err != nil {
		c.log(noPriority, fmt.Sprintf("SCHED_FIFO %d refused: %v", a.Priority, err))
	}
	return err == nil
}

// report logs that a priority of the configuration is not available. What threads get is logged when they get it: it depends on cameras and
// engines that are not known at the start.
func (c *ThreadScheduling) report() {
	if c.refusal != "" && !c.auto {
		c.logger.Info(noPriority, "reason", c.refusal)
	}
}

const noPriority = "real-time priority not available for capture and frame-loop threads"

// log logs the first refusal.
func (c *ThreadScheduling) log(message, refusal string) {
	if c.refused.CompareAndSwap(nil, &refusal) {
		c.logger.Info(message, "reason", refusal)
	}
}

// State describes the scheduling of capture threads, with a reason if it differs from the configuration.
func (c *ThreadScheduling) State() string {
	if refused := c.refused.Load(); refused != nil {
		return "as the others: " + *refused
	}
	text := "as the others"
	switch {
	case c.priority > 0 && c.crowded():
		text += ": not fewer cameras than CPUs"
	case c.priority > 0:
		text = fmt.Sprintf("SCHED_FIFO %d", c.priority)
	case c.refusal != "":
		text += ": " + c.refusal
	}
	if c.cpus != nil {
		text += "; on CPUs " + list(c.cpus)
	}
	return text
}
