package tensorrt

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// ErrNoPlan is returned by Open for an ONNX model without a usable plan in the cache: build one, then open again.
var ErrNoPlan = errors.New("no engine plan")

// Engine is a plan on a GPU. Every slot has its own execution context, stream and memory, so that slots run concurrently.
type Engine struct {
	// Set by Open.
	model   engine.Model
	img     *engine.ImageInput // nil if there is none
	log     *slog.Logger
	library *Library
	plugins []PluginFacts
	device  *cuda.Device
	kernels *kernels
	handle  *C.ei_engine
	mapped  bool // the letterbox reads images in place
	shared  bool // inputs, outputs and candidates stay in place too
	tensors []C.ei_tensor
	slots   []*slot

	memory buffers

	// open is read-locked by every call and locked by Close.
	open   sync.RWMutex
	closed bool
}

// Open loads a plan, or the cached plan of an ONNX model; without one it returns ErrNoPlan. Errors have a hint.
func (o Options) Open() (engine.Engine, error) {
	e := &Engine{log: o.Log}
	if e.log == nil {
		e.log = slog.Default()
	}
	if err := e.load(&o); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Engine) load(o *Options) error {
	var err error
	e.device, err = cuda.Open(o.Device)
	if err != nil {
		return err
	}
	build := o.BuildOptions()
	e.library, err = OpenLibrary(build.Library)
	if err != nil {
		return err
	}
	defer e.library.Drain(e.log)
	e.plugins, err = e.library.LoadPlugins(build.Plugins, e.log)
	if err != nil {
		return err
	}
	file := o.Bytes
	var stale func() error // removes a cached plan that cannot be used
	if !IsPlan(file) {
		file, stale, err = e.cached(o, &build)
		if err != nil {
			return err
		}
	}
	facts, plan, err := ReadPlan(file)
	if err != nil {
		return newError("open", engine.ErrPlanMismatch, "run edge-infer build again", "%s: %v", o.Path, err)
	}
	if err := missingPlugin(facts.Plugins, e.plugins, e.log); err != nil {
		return err
	}
	if err := e.deserialize(o, &build, facts, plan); err != nil {
		if stale != nil && errors.Is(err, engine.ErrPlanMismatch) {
			return errors.Join(&rejectedPlan{err}, stale())
		}
		return err
	}
	if err := e.describe(o, facts); err != nil {
		return err
	}
	return e.openSlots(o)
}

// rejectedPlan is the error of a rejected cached plan: ErrNoPlan together with the reason.
type rejectedPlan struct{ error }

func (n *rejectedPlan) Unwrap() error        { return n.error }
func (n *rejectedPlan) Is(target error) bool { return target == ErrNoPlan }

// cached returns the cached plan of an ONNX model.
func (e *Engine) cached(o *Options, build *BuildOptions) (file []byte, stale func() error, err error) {
	key, err := build.key(e.library.Version, e.device.Facts(), e.plugins)
	if err != nil {
		return nil, nil, err
	}
	file, ok, err := o.Cache.Load(key)
	if errors.Is(err, errUntrusted) {
		return nil, nil, err
	}
	if err != nil {
		e.log.Warn("plan of the cache is not usable", "reason", err)
	}
	if !ok && !(e.library.Builder && e.library.Parser) { // nobody should try to build without builder or parser
		return nil, nil, newError("open", engine.ErrUnsupported, fullLibraryHint, "%s can run but not build plans, and %s is not a plan",
			e.library.Path, o.Path)
	}
	if !ok || err != nil {
		return nil, nil, &engine.Error{
			Op: "open", Backend: Name, Err: ErrNoPlan,
			Message: fmt.Sprintf("TensorRT %s on %s (%s), %s", key.TensorRT, key.GPU, key.Architecture, key.Build.Precision),
			Hint:    "run edge-infer build, or let the daemon build it",
		}
	}
	e.model.Plan, err = o.Cache.file(key)
	return file, func() error { return o.Cache.Remove(key) }, err
}

func (e *Engine) deserialize(o *Options, build *BuildOptions, facts PlanFacts, plan []byte) error {
	dla := -1
	switch {
	case build.DLA != nil:
		dla = *build.DLA
	case facts.DLA != nil:
		dla = *facts.DLA
	}
	var info C.ei_engine_info
	var ee C.ei_error
	code := C.ei_engine_open(e.library.handle, C.ei_cuda_context(e.device.Context()), unsafe.Pointer(&plan[0]), C.size_t(len(plan)),
		C.int(o.Profile), C.int(dla), flag(o.AllowHostCode), &e.handle, &info, &ee)
	if code == C.EI_PLAN {
		return e.mismatch(facts, &ee)
	}
	if code != 0 {
		return shimError("open", &ee)
	}
	e.tensors = make([]C.ei_tensor, info.tensors)
	for i := range e.tensors {
		if C.ei_engine_tensor(e.handle, C.int(i), &e.tensors[i], &ee) != 0 {
			return shimError("open", &ee)
		}
	}
	return nil
}

// mismatch returns the error of a rejected plan: the versions it was built for and those of this machine.
func (e *Engine) mismatch(facts PlanFacts, ee *C.ei_error) error {
	device := e.device.Facts()
	here := fmt.Sprintf("this is %s on %s (%s)", e.library.Version, device.ComputeCapability(), device.Name)
	built := "plan of unknown origin"
	switch {
	case facts.Version != "" && facts.Architecture != "":
		built = fmt.Sprintf("built for TensorRT %s on %s (%s)", facts.Version, facts.Architecture, facts.GPU)
	case facts.Version != "":
		built = "built for TensorRT " + facts.Version
	}
	words := strings.TrimPrefix(C.GoString(&ee.message[0]), "plan refused: ")
	hint := "run edge-infer build again"
	if strings.Contains(words, "IPluginCreator") {
		hint = "load the library of its operators with --plugin LIB.so"
	}
	return &engine.Error{
		Op: "open", Backend: Name, Code: int(ee.code), Kind: engine.ErrPlanMismatch,
		Message: built + ", " + here + ": " + words, Hint: hint,
	}
}

// types maps TensorRT's element types by number.
var types = map[C.int]engine.DataType{
	0: engine.Float32, 1: engine.Float16, 2: engine.Int8, 3: engine.Int32, 4: engine.Bool, 5: engine.Uint8, 8: engine.Int64,
}

// describe sets the model and chooses the memory mode.
func (e *Engine) describe(o *Options, facts PlanFacts) error {
	device := e.device.Facts()
	m := engine.Model{
		Path: o.Path, Plan: e.model.Plan, Metadata: facts.Metadata.Override(o.Metadata), Backend: Name,
		BackendVersion: e.library.Version.String(), Device: fmt.Sprintf("%s (%s)", device.Name, device.ComputeCapability()),
		Precision: facts.Precision, MaxBatch: 1, BlocksThread: true,
	}
	if m.Precision == "" && o.Precision != engine.Auto {
		m.Precision = o.Precision
	}
	var optimum []engine.TensorInfo // inputs in the plan's optimum shapes
	for i := range e.tensors {
		t := &e.tensors[i]
		info := engine.TensorInfo{Name: C.GoString(t.name), Type: types[t._type], Shape: make([]int64, t.rank)}
		for d := range info.Shape {
			info.Shape[d] = int64(t.shape[d])
		}
		if t.input == 0 {
			m.Outputs = append(m.Outputs, info)
			continue
		}
		m.Inputs = append(m.Inputs, info)
		optimum = append(optimum, withOptimumSides(info, t))
		if len(info.Shape) > 0 && info.Shape[0] != 0 {
			m.MaxBatch = int(min(t.max[0], C.EI_MAX_BATCH))
		}
	}
	e.img, m.NoImage = engine.FindImageInput(optimum, m.Metadata)
	switch {
	case e.img == nil:
		m.MaxBatch = 1
	case e.img.Batch == 0 && o.MaxBatch > 0:
		m.MaxBatch = min(m.MaxBatch, o.MaxBatch)
	}
	if e.img != nil {
		m.Image, m.Width, m.Height = e.img, e.img.Width, e.img.Height
		if err := e.img.CheckBatch(m.MaxBatch); err != nil {
			return &engine.Error{Op: "open", Backend: Name, Kind: engine.ErrUnsupported, Err: err}
		}
	}
	why := ""
	e.mapped, why = ChooseMemory(o.Memory, device)
	e.shared = e.mapped && device.Integrated
	m.Reason = fmt.Sprintf("TensorRT %s on %s, %s", m.BackendVersion, m.Device, why)
	e.log.Info("engine memory", "images_in_place", e.mapped, "outputs_in_place", e.shared, "reason", why)
	e.model = m
	return nil
}

// withOptimumSides returns an input with the plan's optimum height and width in place of dynamic ones. The batch stays dynamic.
func withOptimumSides(info engine.TensorInfo, t *C.ei_tensor) engine.TensorInfo {
	info.Shape = slices.Clone(info.Shape)
	for d := 1; d < len(info.Shape); d++ {
		if info.Shape[d] < 0 {
			info.Shape[d] = int64(t.opt[d])
		}
	}
	return info
}

// ChooseMemory returns the memory mode for a device with the reason. mapped means that the letterbox reads images in place.
func ChooseMemory(wanted MemoryMode, device cuda.Facts) (mapped bool, why string) {
	switch {
	case wanted == MemoryCopy:
		return false, "copies as configured"
	case wanted == MemoryMapped:
		return true, "mapped memory as configured"
	case !device.MapsHostMemory:
		return false, "copies because the GPU cannot map host memory"
	case device.Integrated:
		return true, "mapped memory because the GPU shares the machine's memory"
	}
	return true, "images read in mapped memory, tensors copied because the GPU has its own memory"
}

func (e *Engine) openSlots(o *Options) error {
	var err error
	if e.model.Width > 0 {
		e.kernels, err = newKernels(e)
		if err != nil {
			return err
		}
		if o.Filter != nil {
			e.model.Filter = o.Filter(e.model)
		}
	}
	count := o.Slots
	if count < 1 {
		count = 2
	}
	for range count {
		s, err := e.openSlot(o)
		if s != nil {
			e.slots = append(e.slots, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Model describes the plan.
func (e *Engine) Model() engine.Model { return e.model }

// Slots returns the number of execution contexts.
func (e *Engine) Slots() int { return len(e.slots) }

// ReadsDevice implements engine.DeviceReader.
func (e *Engine) ReadsDevice(gpu int) bool { return gpu == e.device.Facts().Ordinal }

// Alloc returns pinned host memory.
func (e *Engine) Alloc(size int) (*engine.Buffer, error) {
	e.open.RLock()
	defer e.open.RUnlock()
	if e.closed {
		return nil, newError("alloc", engine.ErrClosed, "", "the engine is closed")
	}
	return e.memory.alloc(e.device, size)
}

// Close waits for work in flight and frees all resources. It is idempotent and may be called from any goroutine.
func (e *Engine) Close() error {
	e.open.Lock()
	defer e.open.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	for _, s := range e.slots {
		s.close()
	}
	if e.handle != nil {
		C.ei_engine_close(e.handle)
	}
	e.memory.close()
	var err error
	if e.kernels != nil {
		err = e.kernels.close()
	}
	if e.device != nil {
		err = errors.Join(err, e.device.Close())
	}
	return err
}
