package diagnose

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
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Doctor checks one machine for one configuration. It changes nothing.
type Doctor struct {
	Config *config.Config
	// Program is the command of the child processes, which call Serve; nil for this program with Command.
	Program []string
	// Timeout bounds each child process and the broker's answer, a minute if 0.
	Timeout time.Duration

	// The zero values of the following fields mean this machine; tests set others.
	Root string // prefix of the paths in /sys, /proc, /etc and /dev
	// directories that the daemon writes to, without a path: skipped; nil for those of the configuration
	Dirs         []Dir
	Devices      func() []source.DeviceInfo // V4L2 devices
	Free         func(dir string) (bytes int64, err error)
	Synchronized func() (bool, error) // state of the system clock
}

// Dir is a directory that the daemon writes to.
type Dir struct {
	Name, Path string
	Need       int64  // bytes that should be free
	Move       string // how to configure another directory
}

// Run makes all checks in order, calls each for every one as soon as it is complete, and returns all of them. The context ends it.
func (d *Doctor) Run(ctx context.Context, each func(Check)) Checks {
	d.setDefaults()
	all := &collector{each: each}
	add := all.add
	board := cuda.Prober{Root: d.Root}.Jetson()
	add(d.bounded(ctx, "machine", "see dmesg for the sensor that hangs", func() []Check { return d.sensors(board) })...)
	add(d.clock())
	for _, dir := range d.Dirs {
		if dir.Path != "" {
			add(d.bounded(ctx, dir.Name, "remount its disk, or "+dir.Move, func() []Check { return []Check{d.dir(dir)} })...)
		}
	}
	add(d.plans()...)
	add(d.child(ctx, "CUDA driver", request{Job: "driver"}, "reboot; if it stays, install the driver or JetPack again")...)
	add(d.tensorrt(ctx)...)
	add(d.child(ctx, "ONNX Runtime", request{Job: "onnxruntime"},
		"reinstall ONNX Runtime, or set another one with $EDGE_INFER_ONNXRUNTIME")...)
	add(d.gstreamer(board))
	add(d.bounded(ctx, "video device", "unplug the cameras and see dmesg", d.devices)...)
	add(d.cameras(ctx)...)
	add(d.servers(ctx)...)
	add(d.child(ctx, "model", request{Job: modelJob},
		"try --engine onnxruntime; where a large model is slow, give --timeout 10m")...)
	add(d.broker(ctx)...)
	add(d.webhooks(ctx)...)
	add(d.verify(ctx)...)
	add(d.upload(ctx)...)
	add(d.updates(ctx)...)
	return all.checks
}

// bounded runs checks that wait for the kernel, for at most d.Timeout. A file system or driver that hangs blocks a goroutine until the
// program ends.
func (d *Doctor) bounded(ctx context.Context, name, remedy string, run func() []Check) []Check {
	done := make(chan []Check, 1)
	go func() { done <- run() }()
	timer := time.NewTimer(d.Timeout)
	defer timer.Stop()
	select {
	case checks := <-done:
		return checks
	case <-timer.C:
		return []Check{fail(name, remedy, "no answer in %v", d.Timeout)}
	case <-ctx.Done():
		return []Check{fail(name, remedy, "%v", context.Cause(ctx))}
	}
}

// sensors checks the values read from sysfs and procfs. NVML is part of the driver and is not loaded into this process.
func (d *Doctor) sensors(board *cuda.Jetson) []Check {
	reader := &telemetry.Reader{Root: d.Root, FilesOnly: true}
	defer reader.Close()
	reading := reader.Read()
	checks := []Check{d.machine(board, reading), d.memory(board, reading)}
	if board != nil {
		checks = append(checks, d.powerMode(reader, reading))
	}
	return slices.Concat(checks, clocks(board, reading), temperature(reading))
}

func (d *Doctor) tensorrt(ctx context.Context) []Check {
	return d.child(ctx, "TensorRT", request{Job: "tensorrt"},
		"reinstall TensorRT, or set another one with $"+tensorrt.LibraryEnvironment)
}

// writtenDirs returns the directories that the daemon writes to with this configuration.
func (d *Doctor) writtenDirs() []Dir {
	const planSize, spoolSize, clipSize = 1 << 30, 128 << 20, 512 << 20
	cache, err := tensorrt.CacheDir()
	if err != nil {
		cache = ""
	}
	dirs := []Dir{{Name: "cache directory", Path: cache, Need: planSize, Move: "set XDG_CACHE_HOME to another directory"}}
	if d.Config.MQTT.URL != config.Off {
		dirs = append(dirs, Dir{
			Name: "event directory", Path: d.Config.MQTT.Spool, Need: spoolSize, Move: "set mqtt.spool to another directory",
		})
	}
	if d.Config.AnyVideo() {
		dirs = append(dirs, Dir{
			Name: "clip directory", Path: d.Config.Clips.Directory, Need: clipSize, Move: "set clips.directory to another one",
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

// child runs a job in a child process. Checks that the process sent before it died are kept; its death is a failed check with the remedy.
func (d *Doctor) child(ctx context.Context, name string, r request, remedy string) []Check {
	r.Root = d.Root
	r.configure(d.Config)
	checks, err := checksOf(ctx, isolate.Process{Program: d.Program, Timeout: d.Timeout}, &r, name, func(string) {})
	if err != nil {
		checks = append(checks, fail(name, remedy, "%v", err))
	}
	return checks
}

func (d *Doctor) path(name string) string { return filepath.Join(d.Root, name) }
