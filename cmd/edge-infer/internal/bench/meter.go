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

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
)

// meter measures the resources of runs: memory since newMeter, the rest between begin and end. A goroutine of its own reads the sensors;
// all methods are called by one goroutine.
type meter struct {
	sensors telemetry.Reader
	stop    chan struct{}
	stopped sync.WaitGroup

	mutex sync.Mutex // guards the fields set by the sensor goroutine
	on    bool
	own   uint64 // allocations by the sensor goroutine while on
	watts struct {
		sum   float64
		count int
	}
	hottest   *float64
	throttled map[string]bool
	gpuBefore int64 // bytes in use, -1 when unknown
	gpuPeak   int64

	cpus      telemetry.Reader // CPU load of all programs
	begun     time.Time
	processor time.Duration
	objects   uint64
}

// between two readings of the sensors
const sensorInterval = 250 * time.Millisecond

// newMeter starts the sensor goroutine; close ends it.
func newMeter() *meter {
	m := &meter{stop: make(chan struct{}), cpus: telemetry.Reader{FilesOnly: true}, throttled: map[string]bool{}}
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // resets the peak; if that fails, it is the peak of the whole process
	m.gpuBefore = gpuMemory(m.sensors.Read())
	m.gpuPeak = m.gpuBefore
	m.stopped.Go(func() {
		defer m.sensors.Close()
		ticker := time.NewTicker(sensorInterval)
		defer ticker.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-ticker.C:
				m.sample()
			}
		}
	})
	return m
}

func (m *meter) close() {
	close(m.stop)
	m.stopped.Wait()
}

// sample reads the sensors once.
func (m *meter) sample() {
	before := allocated()
	r := m.sensors.Read()
	own := allocated() - before
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.gpuPeak = max(m.gpuPeak, gpuMemory(r))
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

// gpuMemory returns the memory in use on all GPUs in bytes, -1 if unknown.
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
	m.on = true
	m.own = 0
	m.hottest = nil
	m.watts.sum = 0
	m.watts.count = 0
	clear(m.throttled)
	m.mutex.Unlock()
	m.cpus.Read()
	m.begun, m.processor, m.objects = time.Now(), cpuTime(), allocated()
}

// end ends the run and adds its resources to r, whose Frames is set. held is the memory of the benchmark's own images in bytes.
func (m *meter) end(r *Result, held int64) {
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
	if m.gpuPeak >= 0 {
		grown := max(m.gpuPeak-m.gpuBefore, 0)
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

// allocated returns the number of heap objects ever allocated, without stopping the world.
func allocated() uint64 {
	sample := [...]metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
}

// peakMemory returns the peak resident memory since the last reset, residentMemory the current one, in bytes.
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

// cpuTime returns the user and system time of this process on all CPUs.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// thisMachine describes the machine of the benchmark.
func thisMachine() Machine {
	r := telemetry.Reader{FilesOnly: true}
	reading := r.Read()
	m := Machine{
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
