package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine"
)

// Device is an open GPU. It retains the primary context, which TensorRT and ONNX Runtime also use, until Close. Its methods may be called
// from any goroutine. Objects created on a device must be closed before it.
type Device struct {
	facts   Facts
	device  cu.Device
	context cu.CUContext
	close   sync.Once
}

// Facts are the properties of a GPU. Sizes are in bytes.
type Facts struct {
	Ordinal         int    `json:"ordinal"`
	Name            string `json:"name"`
	UUID            string `json:"uuid"`
	Major           int    `json:"major"` // compute capability
	Minor           int    `json:"minor"`
	Integrated      bool   `json:"integrated"`       // shares the machine's memory, as on a Jetson
	MapsHostMemory  bool   `json:"maps_host_memory"` // kernels can read page-locked host memory
	RegistersMemory bool   `json:"registers_memory"` // memory not allocated by CUDA can be page-locked
	Multiprocessors int    `json:"multiprocessors"`
	L2              int64  `json:"l2"`
	Memory          int64  `json:"memory"`
	Exclusive       bool   `json:"exclusive"` // one process at a time, or none
}

// ComputeCapability returns the architecture in the form sm_87.
func (f *Facts) ComputeCapability() string { return fmt.Sprintf("sm_%d%d", f.Major, f.Minor) }

// Open opens a GPU by its number in the driver's order, which CUDA_VISIBLE_DEVICES may change. Errors are *engine.Error of kind
// engine.ErrUnavailable.
func Open(ordinal int) (*Device, error) {
	if _, err := load(); err != nil {
		return nil, err
	}
	count, err := cu.NumDevices()
	if err != nil {
		return nil, wrap("open", "counting GPUs", err)
	}
	if ordinal < 0 || ordinal >= count {
		return nil, &engine.Error{
			Op: "open", Backend: "cuda", Kind: engine.ErrUnavailable,
			Message: fmt.Sprintf("no GPU number %d: there are %d", ordinal, count), Hint: "edge-infer devices lists them",
		}
	}
	d := &Device{}
	if d.device, err = cu.GetDevice(ordinal); err != nil {
		return nil, wrap("open", fmt.Sprintf("GPU %d", ordinal), err)
	}
	if d.facts, err = read(d.device, ordinal); err != nil {
		return nil, err
	}
	if d.context, err = d.device.RetainPrimaryCtx(); err != nil {
		return nil, wrap("open", fmt.Sprintf("context of GPU %d (%s)", ordinal, d.facts.Name), err)
	}
	d.limitStack()
	return d, nil
}

// stackSize is the stack limit of a GPU thread in bytes. CUDA reserves it for every resident thread: the default of 1024 takes 264 MiB of
// the 551 MiB of a context on an H200. Kernels with a known stack size get it in any case; the limit matters only for recursion and calls
// through pointers.
const stackSize = 512

// limitStack lowers the stack limit of the context to stackSize. Errors are ignored, since they only cost memory.
func (d *Device) limitStack() {
	_ = d.Do(func() error {
		if now, err := cu.Limits(cu.StackSize); err != nil || now <= stackSize {
			return err
		}
		return cu.SetLimit(cu.StackSize, stackSize)
	})
}

// Facts returns the properties of the GPU.
func (d *Device) Facts() Facts { return d.facts }

// Context is the CUcontext for C code, valid until Close.
func (d *Device) Context() unsafe.Pointer { return pointer(&d.context) }

// Close releases the context. It is idempotent.
func (d *Device) Close() error {
	var err error
	d.close.Do(func() { err = wrap("close", d.facts.Name, d.device.ReleasePrimaryCtx()) })
	return err
}

// Do runs f with the device's context current on the calling thread and restores the previous one. It is for set-up; the frame path sets
// the context in its own C call.
func (d *Device) Do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.PushCurrentCtx(d.context); err != nil {
		return wrap("use", d.facts.Name, err)
	}
	err := f()
	_, popped := cu.PopCurrentCtx()
	return errors.Join(err, wrap("use", d.facts.Name, popped))
}

// Synchronize waits for all work on the device.
func (d *Device) Synchronize() error {
	return d.Do(func() error { return wrap("synchronize", d.facts.Name, cu.Synchronize()) })
}

func read(device cu.Device, ordinal int) (Facts, error) {
	f := Facts{Ordinal: ordinal}
	var err error
	if f.Name, err = device.Name(); err != nil {
		return f, wrap("open", fmt.Sprintf("name of GPU %d", ordinal), err)
	}
	if f.Memory, err = device.TotalMem(); err != nil {
		return f, wrap("open", "memory size of "+f.Name, err)
	}
	if id, err := device.UUID(); err == nil { // some virtual GPUs have none
		f.UUID = "GPU-" + id.String()
	}
	const hostRegisterSupported cu.DeviceAttribute = 99 // gorgonia.org/cu has no name for it
	var integrated, maps, registers, l2, mode int
	for _, fact := range []struct {
		attribute cu.DeviceAttribute
		value     *int
	}{
		{cu.ComputeCapabilityMajor, &f.Major},
		{cu.ComputeCapabilityMinor, &f.Minor},
		{cu.MultiprocessorCount, &f.Multiprocessors},
		{cu.Integrated, &integrated},
		{cu.CanMapHostMemory, &maps},
		{hostRegisterSupported, &registers},
		{cu.L2CacheSize, &l2},
		{cu.ComputeMode, &mode},
	} {
		if *fact.value, err = device.Attribute(fact.attribute); err != nil {
			return f, wrap("open", "facts of "+f.Name, err)
		}
	}
	f.Integrated, f.MapsHostMemory, f.RegistersMemory = integrated != 0, maps != 0, registers != 0
	f.L2, f.Exclusive = int64(l2), mode != 0
	return f, nil
}

// pointer reads the one field, a driver handle, of a type of gorgonia.org/cu that does not export it.
func pointer[T cu.CUContext | cu.Module | cu.Function | cu.Stream](handle *T) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(handle))
}
