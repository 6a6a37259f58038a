package process

import (
	buffer "bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// machine writes files below a directory that stands for /.
func machine(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

// restored puts back what Apply changes.
func restored(t *testing.T) {
	processors, limit, gc := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(processors)
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(gc)
	})
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT"} {
		t.Setenv(name, "")
	}
}

func TestCgroupLimits(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known": {nil, 0},
		"version 2, the service's own": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/edge-infer.service\n", "sys/fs/cgroup/system.slice/edge-infer.service/memory.max": "max\n",
			"sys/fs/cgroup/system.slice/edge-infer.service/memory.high": "536870912\n",
		}, 512 << 20},
		"version 2, the slice's is narrower": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n", "sys/fs/cgroup/a/memory.max": "268435456\n",
		}, 256 << 20},
		"a container's own root": {map[string]string{
			"proc/self/cgroup": "0::/../elsewhere\n", "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 << 20},
		"version 1": {map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n4:cpuacct,memory:/docker/1\n0::/\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "134217728\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
		}, 128 << 20},
		"no limit": {map[string]string{
			"proc/self/cgroup": "4:memory:/\n0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 0},
		"damaged": {map[string]string{"proc/self/cgroup": "nonsense\n:\n0::\n", "sys/fs/cgroup/memory.max": "-5\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, cgroupLimit(machine(t, c.files))) })
	}
}

func TestApplyChoosesAndTells(t *testing.T) {
	restored(t)
	root := machine(t, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"})
	var log buffer.Buffer
	c := Apply(DefaultSettings(), root, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	assert.Equal(t, DefaultProcessors(), c.Processors)
	assert.Equal(t, 50, c.GC)
	assert.Equal(t, int64(512<<20), c.MemoryLimit)
	assert.Equal(t, int64(512<<20), debug.SetMemoryLimit(-1))
	assert.Equal(t, "512 MiB, half of the control group's 1024 MiB", c.LimitText())
	assert.Contains(t, log.String(), `msg=runtime processors=`)
	assert.Contains(t, log.String(), `memory_limit="512 MiB, half of the control group's 1024 MiB"`)

	c = Apply(Settings{"3", "off", "64MiB", Off, Off}, root, slog.New(slog.DiscardHandler))
	assert.Equal(t, 3, runtime.GOMAXPROCS(0))
	assert.Equal(t, -1, c.GC)
	assert.Equal(t, int64(64<<20), debug.SetMemoryLimit(-1))
	assert.Equal(t, "64 MiB", c.LimitText())
	assert.Equal(t, "as the others", c.Capture.State())

	c = Apply(Settings{Auto, "250", Off, Off, Off}, root, slog.New(slog.DiscardHandler))
	assert.Equal(t, 250, c.GC)
	assert.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1))
	assert.Equal(t, "none", c.LimitText())
}

func TestTheEnvironmentGoesBeforeAuto(t *testing.T) {
	restored(t)
	root := machine(t, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"})
	t.Setenv("GOMAXPROCS", "2")
	t.Setenv("GOGC", "70")
	t.Setenv("GOMEMLIMIT", "100MiB")
	runtime.GOMAXPROCS(2) // as the runtime does with them at the start
	debug.SetGCPercent(70)
	debug.SetMemoryLimit(100 << 20)
	c := Apply(DefaultSettings(), root, slog.New(slog.DiscardHandler))
	assert.Equal(t, []int{2, 70, 100 << 20}, []int{c.Processors, c.GC, int(c.MemoryLimit)})
	assert.Equal(t, "100 MiB, GOMEMLIMIT", c.LimitText())
}

func TestWhatIsPermitted(t *testing.T) {
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_RTPRIO, &limit))
	if limit.Cur > 0 {
		t.Skip("this user may have SCHED_FIFO by RLIMIT_RTPRIO")
	}
	without := machine(t, map[string]string{"proc/self/status": "Name:\tx\nCapEff:\t0000000000000000\n"})
	with := machine(t, map[string]string{
		"proc/self/status": "Name:\tx\nCapEff:\t0000000000800000\n", "sys/devices/system/cpu/isolated": "2-3\n",
	})
	c := ThreadScheduling{cpuCount: 4}
	c.plan(DefaultSettings(), without)
	assert.Equal(t, "as the others: SCHED_FIFO 10 needs CAP_SYS_NICE or LimitRTPRIO=10", c.State())

	c = ThreadScheduling{cpuCount: 4}
	c.plan(DefaultSettings(), with)
	assert.Equal(t, "SCHED_FIFO 10; on CPUs 2-3", c.State())
	c.SetCameraCount(4)
	assert.Equal(t, "as the others: not fewer cameras than CPUs; on CPUs 2-3", c.State())

	c = ThreadScheduling{cpuCount: 4}
	c.plan(Settings{CaptureCPUs: "1", CapturePriority: "40"}, with)
	c.SetCameraCount(40) // what is asked for by name is done
	assert.Equal(t, "SCHED_FIFO 40; on CPUs 1", c.State())
}

// What the kernel refuses is known before the first line says how threads run. No kernel has that priority.
func TestThePriorityIsTried(t *testing.T) {
	c := ThreadScheduling{cpuCount: 4, priority: 1000}
	c.try()
	assert.Equal(t, "as the others: SCHED_FIFO 1000 refused: invalid argument", c.State())
}

// A thread gets what the kernel permits; what it refuses is told once and is no error.
func TestEnter(t *testing.T) {
	var log buffer.Buffer
	set, err := cpus("1000-1023")
	require.NoError(t, err)
	c := ThreadScheduling{cpus: &set, cpuCount: 2, logger: slog.New(slog.NewTextHandler(&log, nil))}
	onThread(func() { c.SetupCaptureThread() })
	onThread(func() { c.SetupCaptureThread() })
	assert.Equal(t, 1, buffer.Count(log.Bytes(), []byte("capture threads run on any CPU")))
	assert.Contains(t, c.State(), "as the others: CPUs 1000-1023 refused: ")

	var own unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &own))
	first := 0
	for !own.IsSet(first) {
		first++
	}
	one := unix.CPUSet{}
	one.Set(first)
	c = ThreadScheduling{cpus: &one, priority: 5, cpuCount: 2, logger: slog.New(slog.DiscardHandler)}
	var got unix.CPUSet
	var scheduling *unix.SchedAttr
	var loop *unix.SchedAttr
	onThread(func() {
		c.SetupLoopThread()
		loop, _ = unix.SchedGetAttr(0, 0)
	})
	onThread(func() {
		c.SetupCaptureThread()
		_ = unix.SchedGetaffinity(0, &got)
		scheduling, err = unix.SchedGetAttr(0, 0)
	})
	assert.Equal(t, one, got)
	require.NoError(t, err)
	if c.refused.Load() == nil {
		assert.Equal(t, []uint32{unix.SCHED_FIFO, 5}, []uint32{scheduling.Policy, scheduling.Priority})
		assert.Equal(t, []uint32{unix.SCHED_FIFO, 4}, []uint32{loop.Policy, loop.Priority})
	} else {
		assert.Contains(t, c.State(), "SCHED_FIFO 5 refused: ")
	}
}

// A loop that does not sleep keeps a CPU from nobody for longer than one look.
func TestLoopThatIsBusy(t *testing.T) {
	c := ThreadScheduling{priority: 5, cpuCount: 2, logger: slog.New(slog.DiscardHandler)}
	onThread(func() {
		usual, err := unix.SchedGetAttr(0, 0)
		if !assert.NoError(t, err) {
			return
		}
		now, used := time.Now(), time.Duration(0)
		loop := loopThread{capture: &c, first: fifo(4), usual: usual, checked: now}
		c.schedule(loop.first)
		if c.refused.Load() != nil {
			return // TestEnter says so
		}
		policyAfter := func(passed, busy time.Duration) uint32 {
			now, used = now.Add(passed), used+busy
			loop.review(now, func() time.Duration { return used })
			a, err := unix.SchedGetAttr(0, 0)
			assert.NoError(t, err)
			return a.Policy
		}
		assert.EqualValues(t, unix.SCHED_FIFO, policyAfter(loopReview/2, loopReview/2), "not checked yet")
		assert.EqualValues(t, unix.SCHED_FIFO, policyAfter(2*loopReview, loopReview/4))
		assert.EqualValues(t, unix.SCHED_NORMAL, policyAfter(loopReview, loopReview*9/10))
		assert.EqualValues(t, unix.SCHED_NORMAL, policyAfter(loopReview, 0), "others may have kept the CPU from it")
		assert.EqualValues(t, unix.SCHED_FIFO, policyAfter(loopRest, 0))
		assert.EqualValues(t, unix.SCHED_NORMAL, policyAfter(loopReview, loopReview))
	})
}

// onThread runs work on a thread that ends with it.
func onThread(work func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		work()
	}()
	<-done
}

func TestGiveBack(t *testing.T) {
	const size = 256 << 20
	free := func() uint64 { // what Go has from the system and does not use
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapIdle - m.HeapReleased
	}
	garbage := make([]byte, size)
	for i := range garbage {
		garbage[i] = 1
	}
	runtime.KeepAlive(garbage)
	garbage = nil
	runtime.GC() // which by itself keeps it
	ReleaseMemory()
	assert.Less(t, free(), uint64(size/8))
}

// The log mentions a real-time priority only where threads get it, or where the configuration asks for it in vain.
func TestPrioritiesAreLoggedWhereTheyAreUsed(t *testing.T) {
	restored(t)
	root := machine(t, map[string]string{
		"proc/self/cgroup": "0::/\n", "proc/self/status": "Name:\tx\nCapEff:\t0000000000800000\n",
	})
	logged := func(settings Settings, cameras int) string {
		var log buffer.Buffer
		c := Apply(settings, root, slog.New(slog.NewTextHandler(&log, nil)))
		require.Equal(t, settings.CapturePriority == "1000", strings.Contains(log.String(), "SCHED_FIFO"), "no camera and no frame loop yet")
		c.Capture.SetCameraCount(cameras)
		onThread(c.Capture.SetupCaptureThread)
		onThread(c.Capture.SetupCaptureThread)
		if c.Capture.refused.Load() == nil && c.Capture.priority > 0 && cameras < runtime.NumCPU() {
			require.Equal(t, 1, strings.Count(log.String(), "capture threads have priority"))
		} else {
			require.NotContains(t, log.String(), "capture threads have priority")
		}
		require.NotContains(t, log.String(), "frame loops of GPUs", "there is none")
		return log.String()
	}
	logged(DefaultSettings(), 0)
	require.NotContains(t, logged(DefaultSettings(), 1000), "SCHED_FIFO", "more cameras than CPUs")
	off := DefaultSettings()
	off.CapturePriority = Off
	require.NotContains(t, logged(off, 1), "SCHED_FIFO")
	impossible := DefaultSettings()
	impossible.CapturePriority = "1000"
	require.Contains(t, logged(impossible, 1), "real-time priority not available for capture and frame-loop threads")
}
