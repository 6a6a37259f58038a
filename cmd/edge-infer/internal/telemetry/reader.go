package telemetry

import (
	"bytes"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/internal/meminfo"
)

// Reader reads the files of sysfs and procfs and asks NVML. One goroutine uses it at a time; it never fails: what cannot be read is missing
// from the reading. The zero value reads this machine. A file of a broken driver may block for as long as the driver likes, hence Monitor.
type Reader struct {
	// Root is put before the path of every file, for tests.
	Root string
	// NVML is the library to ask instead of libnvidia-ml.so.1. FilesOnly loads none.
	NVML      string
	FilesOnly bool
	// Disk is the directory whose file system is read; "/" when empty.
	Disk string

	buffer [64 << 10]byte // /proc/stat has a line for each CPU

	// Existing files; scanned again after a while, because drivers load late at boot.
	lastScan  time.Time
	zones     []zone
	rails     []rail
	slowdowns []slowdown
	counters  []string // of over-current events
	fans      []fan
	clocks    []string // directories of CPU frequency policies
	jetson    bool
	modes     map[int]string // of nvpmodel

	nvml      *cuda.Management
	nvmlTried bool // loading was attempted

	busy, total uint64           // of all CPUs at the last reading, in ticks
	events      map[string]int64 // of each counter at the last reading
}

// rescanInterval is how old the list of files may become.
const rescanInterval = time.Minute

// Read takes a reading. It opens some dozen small files.
func (r *Reader) Read() *Reading {
	now := time.Now()
	if r.lastScan.IsZero() || now.Sub(r.lastScan) >= rescanInterval {
		r.findFiles()
		r.lastScan = now
	}
	reading := &Reading{
		Time: now, CPU: r.cpu(), Memory: meminfo.Parse(r.contents("/proc/meminfo")), EMC: EMC{Load: -1, Hertz: -1, MaxHertz: -1}, Disk: r.disk(),
		Temperatures: make([]Temperature, 0, len(r.zones)), Rails: make([]Rail, 0, len(r.rails)), GPUs: []GPU{},
	}
	for i := range r.zones {
		if celsius, ok := r.temperature(&r.zones[i]); ok {
			reading.Temperatures = append(reading.Temperatures, Temperature{Name: r.zones[i].name, Celsius: celsius, Limit: r.zones[i].limit})
		}
	}
	r.power(reading)
	r.gpus(reading)
	if r.jetson {
		reading.EMC = r.emc()
		reading.PowerMode = r.powerMode()
	}
	r.readThrottling(reading)
	r.readFans(reading)
	return reading
}

// Close unloads NVML. The reader may be used again.
func (r *Reader) Close() {
	if r.nvml != nil {
		r.nvml.Close()
	}
	r.nvml, r.nvmlTried = nil, false
}

// findFiles finds the files that readings come from.
func (r *Reader) findFiles() {
	r.jetson = cuda.Prober{Root: r.Root}.Jetson() != nil
	r.findZones()
	r.findRails()
	r.findSlowdowns()
	r.findEventCounters()
	r.findFans()
	r.clocks = r.glob("/sys/devices/system/cpu/cpufreq/policy*")
	r.modes = nil
	if r.jetson {
		r.modes = parseModes(r.contents("/etc/nvpmodel.conf"))
	}
}

// glob lists files below the root, which their names no longer hold.
func (r *Reader) glob(pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(r.Root, pattern)) // the patterns are right, so there is no error
	for i := range found {
		found[i] = found[i][len(filepath.Clean("/"+r.Root)):]
		if found[i][0] != '/' {
			found[i] = "/" + found[i]
		}
	}
	return found
}

// contents returns the first bytes of a small file, valid until the next call; none if it cannot be read.
func (r *Reader) contents(path string) []byte {
	file, err := unix.Open(r.Root+path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(file)
	length := 0
	for length < len(r.buffer) {
		n, err := unix.Read(file, r.buffer[length:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break // a sensor that is off answers ENODEV or EAGAIN
		}
		length += n
	}
	return r.buffer[:length]
}

// text returns a file's content without surrounding white space and zero bytes.
func (r *Reader) text(path string) string { return string(bytes.Trim(r.contents(path), " \t\r\n\x00")) }

func (r *Reader) number(path string) (int64, bool) {
	value, err := strconv.ParseInt(string(bytes.TrimSpace(r.contents(path))), 10, 64)
	return value, err == nil
}

// count reads a number that cannot be negative, -1 when there is none.
func (r *Reader) count(path string) int64 {
	value, ok := r.number(path)
	if !ok || value < 0 {
		return -1
	}
	return value
}
