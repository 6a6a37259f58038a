package tensorrt

// #include <stdlib.h>
//
// #include "shim.h"
import "C"

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/internal/meminfo"
)

// BuildOptions configures Build. The zero value of each field selects the default.
type BuildOptions struct {
	// Model is the ONNX file and Path its location, which is also searched for external tensors. Metadata goes into the plan's header.
	Model    []byte          `json:"-"`
	Path     string          `json:"path"`
	Metadata engine.Metadata `json:"metadata"`
	Device   int             `json:"device"`
	Library  LibraryOptions  `json:"library"`
	// Plugins are shared objects with the model's own operators; see Library.LoadPlugins.
	Plugins []string `json:"plugins,omitempty"`
	// Precision Auto is FP16 if the GPU computes it fast. INT8 includes FP16 and needs a model with Q/DQ nodes or Calibration. From
	// TensorRT 11 on the model specifies the precision: use Auto.
	Precision engine.Precision `json:"precision"`
	// StronglyTyped takes every type from the model; TensorRT 11 always does.
	StronglyTyped bool `json:"strongly_typed,omitempty"`
	// Batch is for inputs with a dynamic first dimension; Width and Height are for an image input with dynamic height and width, by default
	// those of the metadata or engine.DefaultSide. Shapes overrides both for the inputs that it names.
	Batch         Range        `json:"batch"`
	Width, Height int          `json:",omitempty"`
	Shapes        []ShapeRange `json:"shapes,omitempty"`
	// Workspace is the largest scratch memory of a layer in bytes.
	Workspace int64 `json:"workspace,omitempty"`
	// OptimizationLevel is the builder's optimization level, 0 (fastest build) to 5; nil for TensorRT's default. It is ignored before 8.6.
	OptimizationLevel *int `json:"level,omitempty"`
	// DLA is the DLA core to build for, with the GPU as fallback; nil for the GPU only.
	DLA *int `json:"dla,omitempty"`
	// VersionCompatible plans run on newer versions of the same family, HardwareCompatible ones on Ampere and newer GPUs.
	VersionCompatible  bool `json:"version_compatible,omitempty"`
	HardwareCompatible bool `json:"hardware_compatible,omitempty"`
	// TimingCache is a file of kernel timings, read if it exists and written after the build; it makes the next build faster. By default
	// BuildProcess.Build keeps one in its Cache.
	TimingCache string      `json:"timing_cache,omitempty"`
	Calibration Calibration `json:"calibration"`
	// Log receives TensorRT's messages; nil for none.
	Log *slog.Logger `json:"-"`

	// timingDir is the directory of the default TimingCache.
	timingDir *Cache
	// workspace is used if Workspace is 0. It does not belong to the plan's key, because it depends on what else runs.
	workspace int64
}

// Range is the range of a dimension: minimum, optimum and maximum. Zeros stand for 1, Min and Opt.
type Range struct {
	Min int `json:"min"`
	Opt int `json:"opt"`
	Max int `json:"max"`
}

func (r Range) complete() Range {
	r.Min = max(r.Min, 1)
	r.Opt = max(r.Opt, r.Min)
	r.Max = max(r.Max, r.Opt)
	return r
}

// ShapeRange is the range of an input's shape.
type ShapeRange struct {
	Name string  `json:"name"`
	Min  []int64 `json:"min"`
	Opt  []int64 `json:"opt"`
	Max  []int64 `json:"max"`
}

// Calibration is the source of INT8 ranges for a model without Q/DQ nodes. TensorRT 10 and before only.
type Calibration struct {
	// Cache is a file in the format of TensorRT's calibration caches, see quantize.Cache.FormatTensorRT.
	Cache string `json:"cache,omitempty"`
	// MinMax is set for a cache of the min-max calibrator, not set for one of the entropy calibrator.
	MinMax bool `json:"minmax,omitempty"`
	// Unquantized are the output tensors of layers that stay in FP16, usually a detect head's last convolutions; the layers after them stay
	// in FP32. See quantize.Plan.Unquantized.
	Unquantized []string `json:"unquantized,omitempty"`
}

// Progress is the progress of a build. Step and Steps count within Phase; both are 0 before TensorRT 9.
type Progress struct {
	Phase   string        `json:"phase,omitempty"`
	Step    int           `json:"step"`
	Steps   int           `json:"steps"`
	Elapsed time.Duration `json:"elapsed"`
}

// Plan is a built plan.
type Plan struct {
	Facts PlanFacts
	// File is the file for Open: header, checksum and TensorRT's plan.
	File []byte
	// Key identifies the plan in a Cache.
	Key Key
}

// sides returns the size of an image input with dynamic height and width.
func (o *BuildOptions) sides() (width, height int) {
	switch {
	case o.Width > 0 && o.Height > 0:
		return o.Width, o.Height
	case o.Metadata.Width > 0 && o.Metadata.Height > 0:
		return o.Metadata.Width, o.Metadata.Height
	}
	return engine.DefaultSide, engine.DefaultSide
}

// resolve replaces Auto by FP16 if the GPU's FP16 rate exceeds its FP32 rate: compute capability 5.3 and later except 6.1. From TensorRT 11
// on Auto stays, because the model specifies the precision.
func (o *BuildOptions) resolvePrecision(version Version, facts cuda.Facts) engine.Precision {
	if o.Precision != engine.Auto && o.Precision != "" {
		return o.Precision
	}
	switch {
	case o.StronglyTyped || version.Major >= 11:
		return engine.Auto
	case fastHalf(capability(facts)):
		return engine.FP16
	}
	return engine.FP32
}

// pollInterval is the interval between reads of the builder's progress.
const pollInterval = 100 * time.Millisecond

// Build builds a plan in this process. This can take many minutes and more memory than running the plan; BuildProcess keeps both away from
// a daemon. progress may be nil and is called from Build's goroutine. Cancellation works from TensorRT 9 on; before, Build returns when
// TensorRT has finished. Errors contain TensorRT's messages.
func Build(ctx context.Context, options BuildOptions, progress func(Progress)) (*Plan, error) {
	if err := checkModel(options.Model); err != nil {
		return nil, err
	}
	device, err := cuda.Open(options.Device)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	if device.Facts().Integrated {
		workspace, err := sharedWorkspace(meminfo.Read(), len(options.Model))
		if err != nil {
			return nil, err
		}
		options.workspace = workspace
	}
	library, err := OpenLibrary(options.Library)
	if err != nil {
		return nil, err
	}
	plugins, err := library.LoadPlugins(options.Plugins, options.Log)
	if err != nil {
		return nil, err
	}
	key, err := options.key(library.Version, device.Facts(), plugins)
	if err != nil {
		return nil, err
	}
	if options.TimingCache == "" && options.timingDir != nil {
		options.TimingCache, err = options.timingDir.TimingFile(library.Version, device.Facts())
		if err != nil {
			return nil, err
		}
	}
	c, err := options.c(key.Build)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(c))
	defer C.free(unsafe.Pointer(c.unquantized))

	state := (*C.ei_progress)(C.calloc(1, C.sizeof_ei_progress))
	defer C.free(unsafe.Pointer(state))
	path := C.CString(options.Path)
	defer C.free(unsafe.Pointer(path))
	var plan C.ei_plan
	var e C.ei_error
	begun := time.Now()
	done := make(chan bool)
	go func() {
		done <- C.ei_build(library.handle, C.ei_cuda_context(device.Context()),
			unsafe.Pointer(&options.Model[0]), C.size_t(len(options.Model)), path, c,
			state, &plan, &e) == 0
	}()
	built := watch(ctx, state, done, begun, progress)
	if options.Log != nil {
		library.Drain(options.Log)
	}
	if !built {
		if e.code == C.EI_CANCELLED {
			return nil, newError("build", nil, "", "cancelled: %v", context.Cause(ctx))
		}
		return nil, buildFailure(&e)
	}
	defer C.ei_plan_free(&plan)
	facts := PlanFacts{
		Version: key.TensorRT, Architecture: key.Architecture, GPU: key.GPU, Precision: key.Build.Precision, Metadata: options.Metadata,
		DLA: options.DLA, Plugins: plugins,
		Model: options.Path, Layers: int(plan.layers), BuildSeconds: float64(plan.nanoseconds) / 1e9,
	}
	file, err := EncodePlan(facts, unsafe.Slice((*byte)(plan.data), int(plan.size)))
	if err != nil {
		return nil, err
	}
	return &Plan{Facts: facts, File: file, Key: key}, nil
}

// On a GPU without memory of its own a build competes with everything else that runs, and TensorRT's default workspace is all memory.
const (
	maxSharedWorkspace = 1 << 30
	// minBuildMemory is what a CUDA context and TensorRT's libraries take before the build begins.
	minBuildMemory = 512 << 20
)

// sharedWorkspace returns the workspace in bytes of a build on such a GPU, 0 for TensorRT's default, or an error if there is too little
// memory for a model of that many bytes.
func sharedWorkspace(m meminfo.Memory, model int) (int64, error) {
	if m.Available < 0 {
		return 0, nil
	}
	free, needed := m.Available+max(m.SwapFree, 0), int64(minBuildMemory+3*model)
	if free < needed {
		const hint = "close other programs or add swap, or build the plan on another board of this kind: edge-infer build -o PLAN"
		return 0, newError("build", nil, hint, "%d MiB of memory and swap are free, a build needs at least %d", free>>20, needed>>20)
	}
	return min(maxSharedWorkspace, m.Available/4), nil
}

// watch reports progress until the build has finished, and cancels it when the context ends.
func watch(ctx context.Context, state *C.ei_progress, done <-chan bool, begun time.Time, progress func(Progress)) bool {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	stop := ctx.Done()
	for {
		select {
		case built := <-done:
			return built
		case <-stop:
			C.ei_progress_cancel(state)
			stop = nil
		case <-ticker.C:
			if progress != nil {
				progress(readProgress(state, begun))
			}
		}
	}
}

// readProgress copies the progress written by the builder's thread.
func readProgress(state *C.ei_progress, begun time.Time) Progress {
	var now C.ei_progress
	C.ei_progress_read(state, &now)
	return Progress{Elapsed: time.Since(begun), Phase: C.GoString(&now.phase[0]), Step: int(now.step), Steps: int(now.steps)}
}

// fullLibraryHint is the hint for a library that can run plans only.
const fullLibraryHint = "install the whole TensorRT with its ONNX parser, or name a plan that edge-infer build -o PLAN made where it is"

func buildFailure(e *C.ei_error) error {
	err := shimError("build", e)
	switch e.code {
	case C.EI_MODEL:
		err.Hint = "export the model with operators that this TensorRT version supports, load its own operators with " +
			"--plugin LIB.so, or run it with --engine onnxruntime"
	case C.EI_SHAPE:
		err.Hint = "give the shape with --shape NAME=MIN,OPT,MAX or --batch MIN,OPT,MAX"
	case C.EI_FILE:
		err.Hint = "check the path, the free space and the permissions"
	case C.EI_LEAN:
		err.Kind, err.Hint = engine.ErrUnsupported, fullLibraryHint
	}
	return err
}

// c returns the shim's options; the caller frees them and their unquantized with C.free.
func (o *BuildOptions) c(key buildKey) (*C.ei_build_options, error) {
	if key.Precision == engine.INT8 && o.StronglyTyped {
		return nil, newError("build", engine.ErrUnsupported, "omit the precision",
			"a strongly typed network takes INT8 from the model's Q/DQ nodes")
	}
	if len(o.Shapes) > C.EI_MAX_TENSORS {
		return nil, newError("build", engine.ErrShape, "", "%d shapes, at most %d", len(o.Shapes), C.EI_MAX_TENSORS)
	}
	c := (*C.ei_build_options)(C.calloc(1, C.sizeof_ei_build_options))
	fill := func() error {
		c.fp16 = flag(key.Precision == engine.FP16 || key.Precision == engine.INT8)
		c.int8 = flag(key.Precision == engine.INT8)
		c.strongly_typed = flag(o.StronglyTyped)
		c.version_compatible, c.hardware_compatible = flag(o.VersionCompatible), flag(o.HardwareCompatible)
		c.minmax = flag(o.Calibration.MinMax)
		c.level, c.dla, c.workspace = C.int(key.Level), C.int(key.DLA), C.size_t(cmp.Or(o.Workspace, o.workspace))
		c.batch = [3]C.int64_t{C.int64_t(key.Batch.Min), C.int64_t(key.Batch.Opt), C.int64_t(key.Batch.Max)}
		c.height, c.width = C.int64_t(key.Height), C.int64_t(key.Width)
		c.shapes = C.int(len(o.Shapes))
		for i := range o.Shapes {
			if err := o.Shapes[i].fill(&c.shape[i]); err != nil {
				return err
			}
		}
		return errors.Join(
			fillText(c.calibration_cache[:], o.Calibration.Cache), fillText(c.timing_cache[:], o.TimingCache))
	}
	if err := fill(); err != nil {
		C.free(unsafe.Pointer(c))
		return nil, err
	}
	if names := key.Unquantized; len(names) > 0 {
		c.unquantized = (*C.char)(C.CBytes([]byte(strings.Join(names, "\x00") + "\x00\x00")))
	}
	return c, nil
}

func (s *ShapeRange) fill(c *C.ei_shape) error {
	rank := len(s.Opt)
	if rank > 8 || len(s.Min) != rank || len(s.Max) != rank {
		return newError("build", engine.ErrShape, "give MIN, OPT and MAX with the same number of dimensions, at most 8",
			"shapes of %s have %d, %d and %d dimensions", s.Name, len(s.Min), rank, len(s.Max))
	}
	c.rank = C.int(rank)
	for d := range rank {
		if s.Min[d] < 0 || s.Min[d] > s.Opt[d] || s.Opt[d] > s.Max[d] {
			return newError("build", engine.ErrShape, "each dimension must have MIN <= OPT <= MAX", "dimension %d of %s is %d, %d, %d", d,
				s.Name, s.Min[d], s.Opt[d], s.Max[d])
		}
		c.min[d], c.opt[d], c.max[d] = C.int64_t(s.Min[d]), C.int64_t(s.Opt[d]), C.int64_t(s.Max[d])
	}
	return fillText(c.name[:], s.Name)
}

// fillText copies a text with a terminating zero into a C array.
func fillText(to []C.char, text string) error {
	if len(text) >= len(to) {
		return newError("build", nil, "use a shorter one", "%.80q... is %d bytes long, at most %d fit", text, len(text), len(to)-1)
	}
	for i := range len(text) {
		to[i] = C.char(text[i])
	}
	return nil
}

func flag(on bool) C.int {
	if on {
		return 1
	}
	return 0
}
