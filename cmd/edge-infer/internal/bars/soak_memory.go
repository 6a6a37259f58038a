package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"time"
)

// memory is how the memory of a process or a GPU went, in MB of 1,000,000 bytes.
type memory struct {
	first, last, most  float64
	slope, uncertainty float64 // MB an hour, and two standard errors of it
}

// watchMemory reads it once a second until it is asked.
func watchMemory(read func() (megabytes float64, ok bool)) func() memory {
	stop, stopped := make(chan struct{}), make(chan struct{})
	var hours, megabytes []float64
	begun := time.Now()
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			if used, ok := read(); ok {
				hours, megabytes = append(hours, time.Since(begun).Hours()), append(megabytes, used)
			}
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
	return func() memory {
		close(stop)
		<-stopped
		return trend(hours, megabytes)
	}
}

// trend fits a line by least squares. Its standard error takes neighbouring values for independent, which they are not quite.
func trend(x, y []float64) memory {
	n := float64(len(x))
	if n < 3 {
		return memory{uncertainty: math.Inf(1)}
	}
	m := memory{first: y[0], last: y[len(y)-1]}
	var meanX, meanY float64
	for i := range x {
		meanX, meanY, m.most = meanX+x[i]/n, meanY+y[i]/n, max(m.most, y[i])
	}
	var xx, xy, residual float64
	for i := range x {
		xx += (x[i] - meanX) * (x[i] - meanX)
		xy += (x[i] - meanX) * (y[i] - meanY)
	}
	m.slope = xy / xx
	for i := range x {
		off := y[i] - meanY - m.slope*(x[i]-meanX)
		residual += off * off
	}
	m.uncertainty = 2 * math.Sqrt(residual/(n-2)/xx)
	return m
}

// resident is what a process has in memory; false when it is gone.
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

// gpuUsed is what of the first GPU's memory is in use, by whomever; false where nvidia-smi does not tell.
func gpuUsed() (megabytes float64, ok bool) {
	text, err := exec.Command("nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return 0, false
	}
	var mebibytes float64
	_, err = fmt.Sscan(string(text), &mebibytes)
	return mebibytes * (1 << 20) / 1e6, err == nil
}
