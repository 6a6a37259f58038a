package cuda

// #include <stdlib.h>
// #include "ei_cuda.h"
//
// // load_module compiles PTX for the current device and writes the compiler's messages to log.
// static int load_module(ei_cuda_module *module, const char *ptx, char *log, unsigned size) {
//     int options[] = {5, 6};  // error log buffer, its size
//     void *values[] = {log, (void *)(size_t)size};
//     return cuModuleLoadDataEx(module, ptx, 2, options, values);
// }
import "C"

import (
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

// Module is a set of kernels, compiled for the device.
type Module struct {
	device *Device
	module cu.Module
}

// Function is a kernel's CUfunction, valid until its module is closed.
type Function unsafe.Pointer

// NewModule compiles PTX. The first time on a device this can take some 100 ms; then the driver uses its cache on disk.
func (d *Device) NewModule(ptx string) (*Module, error) {
	m := &Module{device: d}
	text := C.CString(ptx)
	defer C.free(unsafe.Pointer(text))
	const size = 4096
	log := (*C.char)(C.calloc(size, 1))
	defer C.free(unsafe.Pointer(log))
	err := d.Do(func() error {
		subject := "compiling kernels for " + d.facts.ComputeCapability()
		code := C.load_module((*C.ei_cuda_module)(unsafe.Pointer(&m.module)), text, log, size)
		if message := strings.TrimSpace(C.GoString(log)); code != 0 && message != "" {
			subject += ": " + message
		}
		return failure("open", subject, int(code))
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Function finds a kernel by name.
func (m *Module) Function(name string) (Function, error) {
	var f cu.Function
	err := m.device.Do(func() error {
		var err error
		f, err = m.module.Function(name)
		return wrap("open", "kernel "+name, err)
	})
	return Function(pointer(&f)), err
}

// Close unloads the kernels. It is idempotent and does nothing on nil.
func (m *Module) Close() error {
	if m == nil || m.module == (cu.Module{}) {
		return nil
	}
	module := m.module
	m.module = cu.Module{}
	return m.device.Do(func() error { return wrap("close", "module", module.Unload()) })
}
