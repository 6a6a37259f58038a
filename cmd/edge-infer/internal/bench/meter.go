package bench

import (
	"bytes"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench/result"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
)

// meter watches what runs take of the machine: memory from its opening on, the rest from begin to end. The sensors are read on a goroutine
// of its own; one goroutine calls the rest.
type meter struct {
	sensors telemetry.Reader
	stop    chan struct{}
	stopped sync.WaitGroup

	mutex sync.Mutex // guards what the sensors' goroutine adds
	on    bool
	own   uint64 // allocations of reading the sensors while on
	watts struct {
		sum   float64
		count int
	}
	hottest   *float64
	throttled map[string]bool
	gpuBefore int64 // bytes in use, -1 when unknown
	gpuMost   int64

	cpus      telemetry.Reader // of what all programs together use
	begun     time.Time
	processor time.Duration
	objects   uint64
}

// between two readings of the sensors
const sensorInterval = 250 * time.Millisecond

// newMeter starts watching; close ends it.
func newMeter() *meter {
	m := &meter{stop: make(chan struct{}), cpus: telemetry.Reader{FilesOnly: true}, throttled: map[string]bool{}}
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak begins here; without that it is the process' own
	m.gpuBefore = gpuMemory(m.sensors.Read())
	m.gpuMost = m.gpuBefore
	m.stopped.Go(func() {
		defer m.sensors.Close()
		ticker := time.NewTicker(sensorInterval)
		defer ticker.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-ticker.C:
				m.look()
			}
		}
	})
	return m
}

func (m *meter) close() {
	close(m.stop)
	m.stopped.Wait()
}

// look takes one reading.
func (m *meter) look() {
	before := allocated()
	r := m.sensors.Read()
	own := allocated() - before
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.gpuMost = max(m.gpuMost, gpuMemory(r))
	if !m.on {
		return
	}
	m.own += own
	if len(r.Rails) > 0 {
		for _, rail := range r.Rails {
			m.watts.sum += rail.Watts
		}
		m.watts.count++
	}
	for _, t := range r.Temperatures {
		if m.hottest == nil || t.Celsius > *m.hottest {
			m.hottest = &t.Celsius
		}
	}
	for _, slowdown := range r.Throttled {
		m.throttled[slowdown.Part+": "+string(slowdown.Cause)] = true
	}
}

// gpuMemory is what is in use on all GPUs together, -1 when none tells.
func gpuMemory(r *telemetry.Reading) int64 {
	sum := int64(-1)
	for _, g := range r.GPUs {
		if g.MemoryUsed >= 0 {
			sum = max(sum, 0) + g.MemoryUsed
		}
	}
	return sum
}

// begin starts a run.
func (m *meter) begin() {
	m.mutex.Lock()
	m.on, m.own, m.hottest = true, 0, nil
	m.watts.sum, m.watts.count = 0, 0
	clear(m.throttled)
	m.mutex.Unlock()
	m.cpus.Read()
	m.begun, m.processor, m.objects = time.Now(), cpuTime(), allocated()
}

// end ends the run and writes what it took into r, which knows its frames. held is what of the memory are the benchmark's own images.
func (m *meter) end(r *result.Result, held int64) {
	objects, processor, elapsed := allocated()-m.objects, cpuTime()-m.processor, time.Since(m.begun)
	busy := m.cpus.Read().CPU
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.on = false
	frames := float64(max(r.Frames, 1))
	r.Seconds = elapsed.Seconds()
	r.FPS = float64(r.Frames) / elapsed.Seconds()
	r.CPU = float64(processor.Microseconds()) / frames
	r.Allocations = float64(objects-min(m.own, objects)) / frames
	r.Memory = max(peakMemory()-held, 0)
	if share := percentage(busy.Load); share != nil {
		*share = max(0, *share-processor.Seconds()/elapsed.Seconds()/float64(max(busy.Count, 1)))
		r.Others = share
	}
	if m.gpuMost >= 0 {
		grown := max(m.gpuMost-m.gpuBefore, 0)
		r.GPUMemory = &grown
	}
	if m.watts.count > 0 {
		mean := m.watts.sum / float64(m.watts.count)
		r.Watts = &mean
	}
	r.Temperature = m.hottest
	for what := range m.throttled {
		r.Throttled = append(r.Throttled, what)
	}
}

// allocated counts the heap objects ever made, without stopping the world.
func allocated() uint64 {
	sample := [...]metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
}

// peakMemory is the most that was resident since it was asked to begin, residentMemory what is now, in bytes.
func peakMemory() int64     { return statusBytes("VmHWM:") }
func residentMemory() int64 { return statusBytes("VmRSS:") }

func statusBytes(name string) int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(data, []byte(name))
	if !found {
		return 0
	}
	number, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
	kibibytes, err := strconv.ParseInt(string(number), 10, 52)
	if err != nil {
		return 0
	}
	return kibibytes << 10
}

// cpuTime is what this process has used on all CPUs, user and system.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// thisMachine describes what the benchmark runs on.
func thisMachine() result.Machine {
	r := telemetry.Reader{FilesOnly: true}
	reading := r.Read()
	m := result.Machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Memory: max(reading.Memory.Total, 0),
		Governor: reading.CPU.Governor, PowerMode: reading.PowerMode,
	}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := bytes.Cut(data, []byte("model name\t: ")); found {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			m.Processor = string(line)
		}
	}
	return m
}
