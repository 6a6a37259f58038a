package process

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Runtime is the configuration in force.
type Runtime struct {
	Processors  int   // of Go
	GC          int   // GOGC, below 0 while the collector works towards the memory limit only
	MemoryLimit int64 // of what Go holds, in bytes; 0 for none
	// ThreadScheduling is for the threads that wait for cameras.
	Capture ThreadScheduling

	limitReason string
}

// share is the part of the control group's memory that Go may have: the network, images and OpenCV are not in Go's hands.
const share = 2

// Apply puts valid settings in force for the calling process. GOMAXPROCS, GOGC and GOMEMLIMIT in the environment precede automatic choices,
// and settings precede both. root is the directory of proc and sys, / if empty.
func Apply(s Settings, root string, logger *slog.Logger) *Runtime {
	c := &Runtime{}
	if n, err := strconv.Atoi(s.Processors); err == nil {
		runtime.GOMAXPROCS(n)
	} else {
		SetDefaultProcessors()
	}
	c.Processors = runtime.GOMAXPROCS(0)

	switch n, err := strconv.Atoi(s.GC); {
	case s.GC == Off:
		debug.SetGCPercent(-1)
	case err == nil:
		debug.SetGCPercent(n)
	case os.Getenv("GOGC") == "":
		debug.SetGCPercent(usualGC)
	}
	c.GC = debug.SetGCPercent(-1) // the only way to ask for it
	debug.SetGCPercent(c.GC)

	c.limitMemory(s.MemoryLimit, root)
	c.Capture = ThreadScheduling{logger: logger, cpuCount: runtime.NumCPU()}
	c.Capture.plan(s, root)
	c.Capture.try()
	logger.Debug("runtime", "processors", c.Processors, "gc_percent", c.GC, "memory_limit", c.LimitText())
	c.Capture.report()
	return c
}

// SettleTime is the time after a start or a change of the configuration when cameras are open and networks loaded, so that ReleaseMemory
// can free most of the memory used for it.
const SettleTime = 20 * time.Second

// ReleaseMemory has Go collect once and return all free memory to the system at once. By itself it collects only when the heap has doubled
// or after two minutes, and then keeps a good part. With 32 MB in use it takes 7 ms of a core, and Go's goroutines stop for 0.2 ms of them.
func ReleaseMemory() { debug.FreeOSMemory() }

// usualGC is half of Go's own figure. The frame loop makes no garbage, so that collecting costs next to nothing; but what clients of the
// broker and the page make it hold, up to its limits, would be doubled by garbage.
const usualGC = 50

// LimitMemory sets Go's soft memory limit in bytes, unless GOMEMLIMIT is set. Without a limit the garbage of large requests doubles the
// memory.
func LimitMemory(limit int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

func (c *Runtime) limitMemory(wanted, root string) {
	limit := int64(math.MaxInt64)
	switch group := cgroupLimit(root); {
	case wanted == Off:
	case wanted != Auto:
		limit, _ = bytes(wanted) // it has been checked
	case os.Getenv("GOMEMLIMIT") != "":
		limit, c.limitReason = debug.SetMemoryLimit(-1), "GOMEMLIMIT"
	case group > 0:
		limit, c.limitReason = max(group/share, leastMemory), fmt.Sprintf("half of the control group's %d MiB", group>>20)
	}
	debug.SetMemoryLimit(limit)
	if limit != math.MaxInt64 {
		c.MemoryLimit = limit
	}
}

// LimitText is the memory limit in words.
func (c *Runtime) LimitText() string {
	if c.MemoryLimit == 0 {
		return "none"
	}
	text := fmt.Sprintf("%d MiB", c.MemoryLimit>>20)
	if c.limitReason != "" {
		text += ", " + c.limitReason
	}
	return text
}

// isolated returns the CPUs reserved by the kernel parameter isolcpus=; false for none.
func isolated(root string) (unix.CPUSet, bool) {
	text, err := os.ReadFile(filepath.Join("/", root, "sys/devices/system/cpu/isolated"))
	if err != nil || strings.TrimSpace(string(text)) == "" {
		return unix.CPUSet{}, false
	}
	set, err := cpus(strings.TrimSpace(string(text)))
	return set, err == nil
}

// mayFIFO reports whether the kernel's rules permit this process threads of that SCHED_FIFO priority: by CAP_SYS_NICE or the limit RTPRIO.
// The kernel may still refuse, see try.
func mayFIFO(root string, priority int) bool {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RTPRIO, &limit) == nil && limit.Cur >= uint64(priority) {
		return true
	}
	text, err := os.ReadFile(filepath.Join("/", root, "proc/self/status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if mask, found := strings.CutPrefix(line, "CapEff:"); found {
			held, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && held&(1<<unix.CAP_SYS_NICE) != 0
		}
	}
	return false
}
