package config

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"

func runtimeSettings(s *process.Settings) []setting {
	return []setting{
		{
			"runtime.processors", "processors", text(&s.Processors), s.ValidateProcessors,
			"Go's processors (GOMAXPROCS); auto: twice the CPUs and 4 more",
		},
		{
			"runtime.gc_percent", "gc-percent", text(&s.GC), s.ValidateGC,
			"how much the heap grows before garbage is collected (GOGC), or off; auto: 100",
		},
		{
			"runtime.memory_limit", "memory-limit", text(&s.MemoryLimit), s.ValidateMemoryLimit,
			"what Go's heap is kept under (GOMEMLIMIT), as 256MiB, or off; auto: half of the control group's limit",
		},
		{
			"runtime.capture_cpus", "capture-cpus", text(&s.CaptureCPUs), s.ValidateCaptureCPUs,
			"CPUs of the threads that wait for live cameras, as 0,2-3, or off; auto: those that the kernel keeps free (isolcpus=)",
		},
		{
			"runtime.capture_priority", "capture-priority", text(&s.CapturePriority), s.ValidateCapturePriority,
			"their SCHED_FIFO priority, 1 to 99, or off, and one less for TensorRT's frame loops; " +
				"auto: 10 where it is permitted, for cameras that are fewer than the CPUs",
		},
	}
}
