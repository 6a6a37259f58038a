// Package process adapts the process to its machine: GOMAXPROCS, the garbage collector, the memory limit, and the CPUs and scheduling of
// capture threads. Auto chooses each from the machine, and the choice is reported.
package process

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Words that settings accept instead of values.
const (
	Auto = "auto"
	Off  = "off"
)

// Settings are the user's settings; Auto leaves the choice to Apply.
type Settings struct {
	Processors      string `yaml:"processors"`       // of Go, a number
	GC              string `yaml:"gc_percent"`       // a number as GOGC takes it, or Off
	MemoryLimit     string `yaml:"memory_limit"`     // of what Go holds: bytes with a unit, or Off
	CaptureCPUs     string `yaml:"capture_cpus"`     // as 0,2-3, or Off
	CapturePriority string `yaml:"capture_priority"` // of SCHED_FIFO, or Off
}

// DefaultSettings leave everything to Apply.
func DefaultSettings() Settings { return Settings{Auto, Auto, Auto, Auto, Auto} }

// Bounds of the numeric settings; memory is in bytes.
const (
	mostProcessors = 1024
	leastGC        = 10
	mostGC         = 10000
	leastMemory    = 16 << 20
	mostPriority   = 99
)

// ValidateProcessors returns an error unless Processors is auto or a number in bounds.
func (s *Settings) ValidateProcessors() error {
	return wholeOrWord(s.Processors, 1, mostProcessors, Auto)
}

// ValidateGC checks GC.
func (s *Settings) ValidateGC() error { return wholeOrWord(s.GC, leastGC, mostGC, Auto, Off) }

// ValidateCapturePriority checks CapturePriority.
func (s *Settings) ValidateCapturePriority() error {
	return wholeOrWord(s.CapturePriority, 1, mostPriority, Auto, Off)
}

// ValidateMemoryLimit checks MemoryLimit.
func (s *Settings) ValidateMemoryLimit() error {
	if s.MemoryLimit == Auto || s.MemoryLimit == Off {
		return nil
	}
	_, err := bytes(s.MemoryLimit)
	return err
}

// ValidateCaptureCPUs checks CaptureCPUs, not whether the machine has them.
func (s *Settings) ValidateCaptureCPUs() error {
	if s.CaptureCPUs == Auto || s.CaptureCPUs == Off {
		return nil
	}
	_, err := cpus(s.CaptureCPUs)
	return err
}

func wholeOrWord(text string, least, most int, words ...string) error {
	for _, word := range words {
		if text == word {
			return nil
		}
	}
	if n, err := strconv.Atoi(text); err != nil || n < least || n > most {
		return fmt.Errorf("%q is neither %s nor a number from %d to %d", text, strings.Join(words, " nor "), least, most)
	}
	return nil
}

// bytes reads a size such as 256MiB; a plain number is bytes.
func bytes(text string) (int64, error) {
	number, shift := text, 0
	for unit, by := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if before, found := strings.CutSuffix(text, unit); found {
			number, shift = before, by
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift || n<<shift < leastMemory {
		return 0, fmt.Errorf("%q is neither %s nor %s nor a size of at least 16MiB, as 256MiB or 1GiB", text, Auto, Off)
	}
	return n << shift, nil
}

// cpus reads a list of CPU numbers and ranges as the kernel writes it: 0,2-3.
func cpus(text string) (unix.CPUSet, error) {
	var set unix.CPUSet
	most := 64 * len(set)
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(first)
		to := from
		if isRange && err == nil {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to < from || to >= most {
			return unix.CPUSet{}, fmt.Errorf("%q is no list of CPU numbers below %d, as 0 or 0,2-3", text, most)
		}
		for cpu := from; cpu <= to; cpu++ {
			set.Set(cpu)
		}
	}
	return set, nil
}

// list writes a set as cpus reads it.
func list(set *unix.CPUSet) string {
	var parts []string
	for cpu := 0; cpu < 64*len(set); cpu++ {
		if !set.IsSet(cpu) {
			continue
		}
		first := cpu
		for cpu+1 < 64*len(set) && set.IsSet(cpu+1) {
			cpu++
		}
		if cpu == first {
			parts = append(parts, strconv.Itoa(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, cpu))
		}
	}
	return strings.Join(parts, ",")
}
