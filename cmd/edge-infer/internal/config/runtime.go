package config

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"

func runtimeSettings(s *process.Settings) []setting {
	return []setting{
		{"runtime.processors", "", text(&s.Processors), s.ValidateProcessors, "GOMAXPROCS; auto: twice the CPUs plus 4"},
		{"runtime.gc_percent", "", text(&s.GC), s.ValidateGC, "GOGC, heap growth in percent before a garbage collection, or off; auto: 50"},
		{
			"runtime.memory_limit", "", text(&s.MemoryLimit), s.ValidateMemoryLimit,
			"GOMEMLIMIT, for example 256MiB, or off; auto: half of the control group's limit",
		},
		{
			"runtime.capture_cpus", "", text(&s.CaptureCPUs), s.ValidateCaptureCPUs,
			"CPUs of the capture threads, for example 0,2-3, or off; auto: the CPUs isolated by isolcpus=",
		},
		{
			"runtime.capture_priority", "", text(&s.CapturePriority), s.ValidateCapturePriority,
			"SCHED_FIFO priority of the capture threads, 1 to 99, or off; auto: 10 if permitted and there are fewer cameras than CPUs",
		},
	}
}
