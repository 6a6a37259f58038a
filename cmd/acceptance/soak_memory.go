package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory is the trend of the memory of a process or a GPU, in MB of 1,000,000 bytes. A change of configuration takes memory at once, which
// is no leak: the slope is fitted to the times between changes, and the differences between them are steps.
type memory struct {
	first, last, max   float64
	slope, uncertainty float64   // MB per hour, and two standard errors
	steps              []float64 // from the end of one period to the start of the next
}

// memoryWatch samples memory once a second.
type memoryWatch struct {
	stop, stopped chan struct{}

	mu     sync.Mutex
	steady bool
	parts  []series // periods between changes
}

// series holds samples, in hours and MB.
type series struct{ hours, megabytes []float64 }

// watchMemory starts sampling; samples between begin and change are kept.
func watchMemory(read func() (megabytes float64, ok bool)) *memoryWatch {
	w := &memoryWatch{stop: make(chan struct{}), stopped: make(chan struct{})}
	begun := time.Now()
	go func() {
		defer close(w.stopped)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			if used, ok := read(); ok {
				w.add(time.Since(begun).Hours(), used)
			}
			select {
			case <-ticker.C:
			case <-w.stop:
				return
			}
		}
	}()
	return w
}

func (w *memoryWatch) add(hours, megabytes float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.steady {
		s := &w.parts[len(w.parts)-1]
		s.hours, s.megabytes = append(s.hours, hours), append(s.megabytes, megabytes)
	}
}

// begin starts a period without changes.
func (w *memoryWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steady, w.parts = true, append(w.parts, series{})
}

// change ends the period.
func (w *memoryWatch) change() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steady = false
}

// end stops sampling and returns the trend.
func (w *memoryWatch) end() memory {
	close(w.stop)
	<-w.stopped
	return trend(w.parts)
}

// trend fits lines with a common slope and separate offsets by least squares. The standard error assumes independent samples, which is only
// approximately true.
func trend(parts []series) memory {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s series) bool { return len(s.hours) == 0 })
	var m memory
	var xx, xy, yy float64
	count := 0
	for i, s := range parts {
		x, y := mean(s.hours), mean(s.megabytes)
		for k := range s.hours {
			dx, dy := s.hours[k]-x, s.megabytes[k]-y
			xx += dx * dx
			xy += dx * dy
			yy += dy * dy
			count++
		}
		m.max = max(m.max, slices.Max(s.megabytes))
		m.last = s.megabytes[len(s.megabytes)-1]
		if i == 0 {
			m.first = s.megabytes[0]
		} else {
			before := parts[i-1].megabytes
			m.steps = append(m.steps, s.megabytes[0]-before[len(before)-1])
		}
	}
	free := count - len(parts) - 1
	if free < 1 {
		return memory{uncertainty: math.Inf(1)}
	}
	m.slope = xy / xx
	m.uncertainty = 2 * math.Sqrt(max(0, yy-m.slope*xy)/float64(free)/xx)
	return m
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// resident returns the resident memory of a process, false if it has ended.
func resident(pid int) (megabytes float64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	var kilobytes float64
	_, line, found := strings.Cut(string(text), "VmRSS:")
	if !found {
		return 0, false
	}
	_, err = fmt.Sscan(line, &kilobytes)
	return kilobytes * 1024 / 1e6, err == nil
}

// gpuUsed returns the memory in use on the first GPU by all processes, false without nvidia-smi.
func gpuUsed() (megabytes float64, ok bool) {
	text, err := exec.Command("nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return 0, false
	}
	var mebibytes float64
	_, err = fmt.Sscan(string(text), &mebibytes)
	return mebibytes * (1 << 20) / 1e6, err == nil
}
