// Package cuda drives an NVIDIA GPU: devices, mapped host memory and kernels' modules. The driver is opened at run time, so
// a program that imports this package starts on any machine; Open and Probe report why a GPU cannot be used. Set-up uses
// gorgonia.org/cu. ei_cuda.h, which C++ code of other packages may include, has all calls of the frame path and those that cu lacks.
package cuda

// #cgo LDFLAGS: -lcuda -ldl -lpthread
// #include <stdlib.h>
//
// #include "ei_cuda.h"
import "C"

import (
	"os"
	"unsafe"

	"gorgonia.org/cu"
)

// LibraryEnvironment is the environment variable with the path of the driver library.
const LibraryEnvironment = "EDGE_INFER_LIBCUDA"

// MinimumDriver is the oldest supported CUDA version of a driver, in the driver's numbering: that of JetPack 5.1.
const MinimumDriver = 11040

// Driver describes the driver library.
type Driver struct {
	// Path is the file that was loaded; empty when there is none.
	Path string `json:"path,omitempty"`
	// Version is 1000*major + 10*minor of the CUDA release that the driver supports.
	Version int `json:"version,omitempty"`
	// Missing is the number of driver functions that this program uses and the driver lacks. They return "not supported".
	Missing int `json:"missing,omitempty"`
}

// libraries are tried in order. The loader's own search finds the driver on desktops and on every JetPack; the paths are for containers
// without an ld.so cache, for WSL and for NixOS.
func libraries() []string {
	if path := os.Getenv(LibraryEnvironment); path != "" {
		return []string{path}
	}
	return []string{
		"libcuda.so.1",
		"/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1",
		"/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1",
		"/usr/lib/wsl/lib/libcuda.so.1",
		"/run/opengl-driver/lib/libcuda.so.1",
	}
}

// load opens the driver and initializes it, once per process; after a failure the next call tries again.
func load() (Driver, error) {
	var facts C.ei_cuda_driver
	var why string
	for _, library := range libraries() {
		name := C.CString(library)
		ready := C.ei_cuda_open(name, &facts) == 0
		C.free(unsafe.Pointer(name))
		if why == "" {
			why = C.GoString(&facts.why[0]) // the first library's reason is the most useful
		}
		if ready || facts.loaded != 0 {
			break
		}
	}
	if facts.loaded == 0 {
		return Driver{}, missingDriver(why)
	}
	driver := Driver{Path: C.GoString(&facts.path[0]), Missing: int(facts.missing)}
	if facts.init != 0 {
		return driver, initFailure(int(facts.init), driver.Path)
	}
	driver.Version = cu.Version()
	if driver.Version < MinimumDriver {
		return driver, oldDriver(driver.Version)
	}
	return driver, nil
}
