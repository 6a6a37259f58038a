package cuda

// #include <dlfcn.h>
// #include <stdlib.h>
import "C"

import (
	"runtime"
	"unsafe"
)

// staticTLS are libraries whose thread-local variables must be in the block that glibc reserves at the start. GStreamer's plugins of
// JetPack need the first one, through libEGL.
var staticTLS = [...]string{"libGLdispatch.so.0", "libgomp.so.1"}

// ReserveStaticTLS loads the libraries that need static thread-local storage, where they are installed. It must come before other libraries
// are loaded: glibc reserves 1,664 bytes for all of them together, and those that can do without take 512. A camera's plugin comes last,
// after CUDA and TensorRT, and would fail with "cannot allocate memory in static TLS block".
func ReserveStaticTLS() {
	if runtime.GOARCH != "arm64" {
		return
	}
	for _, library := range staticTLS {
		name := C.CString(library)
		C.dlopen(name, C.RTLD_LAZY|C.RTLD_LOCAL) // remains loaded; without it, its users fail with a reason of their own
		C.free(unsafe.Pointer(name))
	}
}
