package tensorrt

// #include "shim.h"
import "C"

import (
	"log/slog"

	"github.com/edge-infer/edge-infer/engine"
)

// MemoryMode is how images and tensors travel between host and GPU.
type MemoryMode string

const (
	// MemoryAuto is MemoryMapped, or MemoryCopy on a GPU that cannot map host memory.
	MemoryAuto MemoryMode = ""
	// MemoryMapped has the letterbox read images in pinned host memory, where the camera left them: only the lines that the image's new
	// size needs cross the bus. On an integrated GPU, where a copy would only move bytes within the same memory, the network's inputs and
	// outputs stay in place too; on others they are copied asynchronously on the slot's stream, because a network reads its inputs more than
	// once.
	MemoryMapped MemoryMode = "mapped"
	// MemoryCopy copies images too, asynchronously on the slot's stream.
	MemoryCopy MemoryMode = "copy"
)

// WaitMode is how Wait passes the time.
type WaitMode string

const (
	// WaitAuto sleeps while the request certainly takes and is busy for the rest, some 100 microseconds.
	WaitAuto WaitMode = ""
	// WaitSpin is busy all the time: the least latency, at the price of a CPU core for as long as the GPU works.
	WaitSpin WaitMode = "spin"
	// WaitBlock sleeps until the GPU's interrupt: the least CPU time, some 50 to 300 microseconds later.
	WaitBlock WaitMode = "block"
)

// c is the shim's number.
func (w WaitMode) c() C.int {
	switch w {
	case WaitSpin:
		return C.EI_WAIT_SPIN
	case WaitBlock:
		return C.EI_WAIT_BLOCK
	}
	return C.EI_WAIT_ADAPT
}

// Options opens an engine: those of every backend and TensorRT's own. The zero value of each field asks for the default.
type Options struct {
	engine.Options
	// Build says how the plan of an ONNX model is built, and with that which one of the cache fits. Model, Path, Metadata, Device,
	// Library.Path, Plugins, Precision and Batch.Max are taken from the fields above where those are set.
	Build BuildOptions
	// Cache is the directory of plans; empty for CacheDir.
	Cache Cache
	// Profile is the optimization profile of a plan that has several.
	Profile int
	// Memory chooses between mapped memory and copies.
	Memory MemoryMode
	// NoGraph enqueues each step of a frame instead of replaying a CUDA graph.
	NoGraph bool
	// Wait chooses between latency and CPU time.
	Wait WaitMode
	// AllowHostCode lets version-compatible plans run the code that they carry. Leave it off for plans from elsewhere.
	AllowHostCode bool
	// Log gets what was chosen and why, and TensorRT's messages; nil for slog.Default.
	Log *slog.Logger
}

// BuildOptions are the options that build the plan which Open looks for in the cache.
func (o *Options) BuildOptions() BuildOptions {
	b := o.Build
	b.Model, b.Device = o.Bytes, o.Device
	if o.Path != "" {
		b.Path = o.Path
	}
	if o.Library != "" {
		b.Library.Path = o.Library
	}
	if o.Precision != "" {
		b.Precision = o.Precision
	}
	b.Metadata = b.Metadata.Override(o.Metadata)
	if o.Plugins != nil {
		b.Plugins = o.Plugins
	}
	if o.MaxBatch > 0 {
		b.Batch.Max = o.MaxBatch
	}
	if b.Width == 0 && b.Height == 0 {
		b.Width, b.Height = o.Sides(b.Metadata)
	}
	for _, input := range o.Shapes {
		b.Shapes = append(b.Shapes, ShapeRange{Name: input.Name, Min: input.Shape, Opt: input.Shape, Max: input.Shape})
	}
	return b
}
