package tensorrt

// #include "shim.h"
import "C"

import (
	"log/slog"

	"github.com/edge-infer/edge-infer/engine"
)

// MemoryMode selects how images and tensors are transferred between host and GPU.
type MemoryMode string

const (
	// MemoryAuto is MemoryMapped, or MemoryCopy if the GPU cannot map host memory.
	MemoryAuto MemoryMode = ""
	// MemoryMapped lets the letterbox read images from pinned host memory: only the lines needed for the new size cross the bus. On an
	// integrated GPU the network's outputs are mapped too. Inputs, and the outputs on other GPUs, are copied asynchronously on the slot's
	// stream, because a network reads its inputs more than once.
	MemoryMapped MemoryMode = "mapped"
	// MemoryCopy also copies images asynchronously on the slot's stream.
	MemoryCopy MemoryMode = "copy"
)

// WaitMode selects how Wait waits.
type WaitMode string

const (
	// WaitAuto sleeps for the predictable part of the request and spins for the rest, about 100 microseconds.
	WaitAuto WaitMode = ""
	// WaitSpin spins: lowest latency, but one CPU core is busy while the GPU works.
	WaitSpin WaitMode = "spin"
	// WaitBlock sleeps until the GPU's interrupt: least CPU time, about 50 to 300 microseconds later.
	WaitBlock WaitMode = "block"
)

// c returns the shim's constant.
func (w WaitMode) c() C.int {
	switch w {
	case WaitSpin:
		return C.EI_WAIT_SPIN
	case WaitBlock:
		return C.EI_WAIT_BLOCK
	}
	return C.EI_WAIT_ADAPT
}

// Options configures Open: the options of every backend and TensorRT's own. The zero value of each field selects the default.
type Options struct {
	engine.Options
	// Build configures the plan of an ONNX model and so selects the cached one. The fields above, if set, override Model, Path, Metadata,
	// Device, Library.Path, Plugins, Precision and Batch.Max.
	Build BuildOptions
	// Cache is the directory of plans; empty for CacheDir.
	Cache Cache
	// Profile is the optimization profile of a plan that has several.
	Profile int
	// Memory selects mapped memory or copies.
	Memory MemoryMode
	// NoGraph enqueues each step of a frame instead of replaying a CUDA graph.
	NoGraph bool
	// Wait selects between latency and CPU time.
	Wait WaitMode
	// AllowHostCode lets version-compatible plans run their embedded host code. Leave it off for plans from other machines.
	AllowHostCode bool
	// Log receives decisions with their reasons and TensorRT's messages; nil for slog.Default.
	Log *slog.Logger
}

// BuildOptions returns the build options of the plan that Open searches in the cache.
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
