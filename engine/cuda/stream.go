package cuda

// #include "ei_cuda.h"
//
// static int copy(ei_cuda_context context, ei_cuda_pointer to, ei_cuda_pointer from, size_t bytes, ei_cuda_stream stream) {
//     int code = ei_cuda_use(context);
//     return code ? code : cuMemcpyAsync(to, from, bytes, stream);
// }
//
// static int upload(ei_cuda_context context, ei_cuda_pointer to, const void *from, size_t bytes, ei_cuda_stream stream) {
//     int code = ei_cuda_use(context);
//     return code ? code : cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
// }
//
// static int fill(ei_cuda_context context, ei_cuda_pointer to, unsigned value, size_t words, ei_cuda_stream stream) {
//     int code = ei_cuda_use(context);
//     return code ? code : cuMemsetD32Async(to, value, words, stream);
// }
//
// static int launch(ei_cuda_context context, ei_cuda_function function, const unsigned *grid, const unsigned *block, const void *arguments,
//                   size_t size, ei_cuda_stream stream) {
//     ei_cuda_kernel kernel = {function, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, arguments, size};
//     int code = ei_cuda_use(context);
//     return code ? code : ei_cuda_launch(&kernel, stream);
// }
//
// static int synchronize(ei_cuda_context context, ei_cuda_stream stream) {
//     int code = ei_cuda_use(context);
//     return code ? code : cuStreamSynchronize(stream);
// }
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// Stream runs work in order. It must not be used by two goroutines at once; different streams are independent. Engines with more than a few
// of these calls per frame make them from C++, in one cgo call.
type Stream struct {
	device *Device
	stream cu.Stream
}

// Kernel is one launch of a function whose only parameter is a struct passed by value.
type Kernel struct {
	Function    Function
	Grid, Block [3]uint32
	Arguments   []byte // the struct in C's layout; see Bytes
}

// Bytes views a struct that holds no Go pointers as the bytes of Kernel.Arguments.
func Bytes[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// NewStream creates a stream that does not wait for the default stream.
func (d *Device) NewStream() (*Stream, error) {
	s := &Stream{device: d}
	err := d.Do(func() error {
		var err error
		s.stream, err = cu.MakeStream(cu.NonBlocking)
		return wrap("open", "stream", err)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Native returns the stream as a value of package cu.
func (s *Stream) Native() cu.Stream { return s.stream }

// Copy enqueues a copy between any two of: device memory, mapped host memory.
func (s *Stream) Copy(to, from uint64, bytes int) error {
	code := C.copy(s.device.c(), C.ei_cuda_pointer(to), C.ei_cuda_pointer(from), C.size_t(bytes), s.c())
	return failure("copy", "memory", int(code))
}

// Upload enqueues a copy of host memory to device memory. Page-locked memory must not change until the copy is done; other memory is read
// before the call returns.
func (s *Stream) Upload(to uint64, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	code := C.upload(s.device.c(), C.ei_cuda_pointer(to), unsafe.Pointer(&from[0]), C.size_t(len(from)), s.c())
	if code == 0 {
		return nil
	}
	return failure("copy", fmt.Sprintf("%d bytes to the device", len(from)), int(code))
}

// Fill enqueues a fill of consecutive words of device or mapped memory with a 32-bit value.
func (s *Stream) Fill(to uint64, value uint32, words int) error {
	code := C.fill(s.device.c(), C.ei_cuda_pointer(to), C.uint(value), C.size_t(words), s.c())
	return failure("fill", "memory", int(code))
}

// Launch enqueues a kernel. The kernel is read during the call.
func (s *Stream) Launch(k *Kernel) error {
	code := C.launch(s.device.c(), C.ei_cuda_function(k.Function), (*C.uint)(&k.Grid[0]), (*C.uint)(&k.Block[0]),
		unsafe.Pointer(unsafe.SliceData(k.Arguments)), C.size_t(len(k.Arguments)), s.c())
	return failure("launch", "kernel", int(code))
}

// Synchronize blocks until the stream's work is done; an error may come from any of that work.
func (s *Stream) Synchronize() error {
	return failure("synchronize", "stream", int(C.synchronize(s.device.c(), s.c())))
}

// Close destroys the stream; enqueued work still runs. It is idempotent and does nothing on nil.
func (s *Stream) Close() error {
	if s == nil || s.stream == (cu.Stream{}) {
		return nil
	}
	stream := s.stream
	s.stream = cu.Stream{}
	return s.device.Do(func() error { return wrap("close", "stream", stream.Destroy()) })
}

func (s *Stream) c() C.ei_cuda_stream { return C.ei_cuda_stream(pointer(&s.stream)) }
