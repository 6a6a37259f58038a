package tensorrt

import (
	"log/slog"

	"github.com/edge-infer/edge-infer/engine"
)

// MemoryMode is how pictures and tensors travel between host and GPU.
type MemoryMode string

const (
	// MemoryAuto maps host memory on integrated GPUs, where a copy would only move bytes within the same memory, and copies on others.
	MemoryAuto MemoryMode = ""
	// MemoryMapped lets kernels and TensorRT read and write pinned host memory in place.
	MemoryMapped MemoryMode = "mapped"
	// MemoryCopy copies pinned host memory to device memory and results back, asynchronously on the slot's stream.
	MemoryCopy MemoryMode = "copy"
)

// Options opens an engine: those of every backend and TensorRT's own. The zero value of each field asks for the default.
type Options struct {
	engine.Options
	// Build says how the plan of an ONNX model is built, and with that which one of the cache fits. Model, Path, Metadata, Device, Library.Path,
	// Precision and Batch.Max are taken from the fields above where those are set.
	Build BuildOptions
	// Cache is the folder of plans; empty for CacheFolder.
	Cache Cache
	// Profile is the optimization profile of a plan that has several.
	Profile int
	// Memory chooses between mapped memory and copies.
	Memory MemoryMode
	// NoGraph enqueues each step of a frame instead of replaying a CUDA graph.
	NoGraph bool
	// Spin waits busily: some 20 to 50 microseconds sooner, at the price of a CPU core for as long as the GPU works.
	Spin bool
	// HostCode lets version-compatible plans run the code that they carry. Leave it off for plans from elsewhere.
	HostCode bool
	// Log gets what was chosen and why, and TensorRT's messages; nil for slog.Default.
	Log *slog.Logger
}

// buildOptions completes Build from the fields of every backend.
func (o *Options) buildOptions() BuildOptions {
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
	if o.MaxBatch > 0 {
		b.Batch.Max = o.MaxBatch
	}
	if b.Width == 0 && b.Height == 0 {
		b.Width, b.Height = b.Metadata.Width, b.Metadata.Height
	}
	if b.Width == 0 && b.Height == 0 {
		b.Width, b.Height = engine.DefaultSide, engine.DefaultSide
	}
	return b
}
