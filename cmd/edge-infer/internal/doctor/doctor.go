package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Doctor examines one machine for one configuration. It changes nothing on it.
type Doctor struct {
	Config *config.Config
	// Program is the program whose process calls Serve, this one with Command when nil.
	Program []string
	// Timeout bounds each of those processes and the broker's answer, a minute when 0.
	Timeout time.Duration

	// What follows is for machines that are not this one; the zero values mean this one.
	Root         string                     // put before the paths of sysfs, procfs and the like
	Dirs         []Dir                      // that the daemon writes to, with an empty path passed over; nil for those of the configuration
	Devices      func() []source.DeviceInfo // V4L2 devices
	Free         func(dir string) (bytes int64, err error)
	Synchronized func() (bool, error) // the system clock
}

// Directory is a place that the daemon writes to.
type Dir struct {
	Check, Path string
	Need        int64  // bytes that should be free
	Move        string // how to name another directory
}

// Run makes every check in order and hands each finding to each as soon as it is known. It returns all of them; the context ends it.
func (d *Doctor) Run(ctx context.Context, each func(Finding)) Findings {
	d.setDefaults()
	var all Findings
	add := func(found ...Finding) {
		for _, f := range found {
			all = append(all, f)
			each(f)
		}
	}
	board := cuda.Prober{Root: d.Root}.Jetson()
	add(d.bounded(ctx, "machine", "see dmesg for the sensor that hangs", func() []Finding { return d.sensors(board) })...)
	add(d.clock())
	for _, dir := range d.Dirs {
		if dir.Path != "" {
			add(d.bounded(ctx, dir.Check, "mount its disk again, or "+dir.Move, func() []Finding { return []Finding{d.dir(dir)} })...)
		}
	}
	add(d.plans()...)
	add(d.child(ctx, "CUDA driver", Request{Examine: driverExamination}, "reboot; if it stays, install the driver or JetPack again")...)
	add(d.tensorrt(ctx)...)
	add(d.child(ctx, "ONNX Runtime", Request{Examine: onnxruntimeExamination},
		"install ONNX Runtime again, or name another one with $EDGE_INFER_ONNXRUNTIME")...)
	add(d.gstreamer(board))
	add(d.bounded(ctx, "video device", "unplug the cameras and see dmesg", d.devices)...)
	add(d.cameras(ctx)...)
	add(d.servers(ctx)...)
	add(d.child(ctx, "model", Request{Examine: ModelExamination},
		"try --engine onnxruntime; where a large model is slow, give --timeout 10m")...)
	add(d.broker(ctx)...)
	return all
}

// bounded makes a check that waits for the kernel. A file system or driver that never answers holds a goroutine until the program ends.
func (d *Doctor) bounded(ctx context.Context, check, fix string, examine func() []Finding) []Finding {
	done := make(chan []Finding, 1)
	go func() { done <- examine() }()
	timer := time.NewTimer(d.Timeout)
	defer timer.Stop()
	select {
	case found := <-done:
		return found
	case <-timer.C:
		return []Finding{fail(check, fix, "no answer in %v", d.Timeout)}
	case <-ctx.Done():
		return []Finding{fail(check, fix, "%v", context.Cause(ctx))}
	}
}

// sensors are the checks that a reading of the machine answers. NVML, which is part of the driver, stays out of this process.
func (d *Doctor) sensors(board *cuda.Jetson) []Finding {
	reader := &telemetry.Reader{Root: d.Root, FilesOnly: true}
	defer reader.Close()
	reading := reader.Read()
	found := []Finding{d.machine(board, reading), d.memory(board, reading)}
	if board != nil {
		found = append(found, d.powerMode(reader, reading))
	}
	return slices.Concat(found, clocks(board, reading), temperature(reading))
}

func (d *Doctor) tensorrt(ctx context.Context) []Finding {
	return d.child(ctx, "TensorRT", Request{Examine: tensorrtExamination},
		"install TensorRT again, or name another one with $"+tensorrt.LibraryEnvironment)
}

// writtenDirs are the directories that a run of the configuration writes to.
func (d *Doctor) writtenDirs() []Dir {
	const planSize, spoolSize = 1 << 30, 128 << 20
	cache, err := tensorrt.CacheDir()
	if err != nil {
		cache = ""
	}
	dirs := []Dir{{Check: "cache directory", Path: cache, Need: planSize, Move: "set XDG_CACHE_HOME to another directory"}}
	if d.Config.MQTT.URL != config.Off {
		dirs = append(dirs, Dir{
			Check: "event directory", Path: d.Config.MQTT.Spool, Need: spoolSize, Move: "name another one as mqtt.spool",
		})
	}
	return dirs
}

func (d *Doctor) setDefaults() {
	if program, err := os.Executable(); d.Program == nil && err == nil {
		d.Program = []string{program, Command}
	}
	if d.Dirs == nil {
		d.Dirs = d.writtenDirs()
	}
	if d.Timeout <= 0 {
		d.Timeout = time.Minute
	}
	if d.Devices == nil {
		d.Devices = source.Devices
	}
	if d.Free == nil {
		d.Free = freeBytes
	}
	if d.Synchronized == nil {
		d.Synchronized = synchronized
	}
}

func (d *Doctor) path(name string) string { return filepath.Join(d.Root, name) }
