// Package cudatest drives streams, events, kernels and graphs of a GPU from Go for tests: of the kernels, of the driver calls in ei_cuda.h
// that a frame takes, of stand-ins for a driver, and for the self-test on its owner's machine. The engines make these calls from C++.
package cudatest

// #include "../ei_cuda.h"
//
// static int copy(ei_cuda_context context, ei_cuda_pointer to, ei_cuda_pointer from, size_t bytes, ei_cuda_stream stream) {
//     int code = ei_cuda_use(context);
//     return code ? code : cuMemcpyAsync(to, from, bytes, stream);
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
// static int captured(ei_cuda_stream stream, ei_cuda_node *node) { return ei_cuda_captured(stream, node); }
//
// static int synchronize(ei_cuda_context context, ei_cuda_stream stream) {
//     int code = ei_cuda_use(context);
//     return code ? code : cuStreamSynchronize(stream);
// }
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Stream runs work in order. One goroutine at a time; different streams are independent.
type Stream struct {
	device *cuda.Device
	stream cu.Stream
}

// NewStream makes a stream that does not wait for the default stream.
func NewStream(d *cuda.Device) (*Stream, error) {
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

// Copy enqueues a copy between any two of: device memory, mapped host memory.
func (s *Stream) Copy(to, from uint64, bytes int) error {
	code := C.copy(context(s.device), C.ei_cuda_pointer(to), C.ei_cuda_pointer(from), C.size_t(bytes), s.c())
	return failure("copy", "memory", int(code))
}

// Fill enqueues the writing of a 32-bit value to consecutive words of device or mapped memory.
func (s *Stream) Fill(to uint64, value uint32, words int) error {
	code := C.fill(context(s.device), C.ei_cuda_pointer(to), C.uint(value), C.size_t(words), s.c())
	return failure("fill", "memory", int(code))
}

// Launch enqueues a kernel. The kernel is read during the call.
func (s *Stream) Launch(k *Kernel) error {
	code := C.launch(context(s.device), C.ei_cuda_function(k.Function), (*C.uint)(&k.Grid[0]), (*C.uint)(&k.Block[0]),
		unsafe.Pointer(unsafe.SliceData(k.Arguments)), C.size_t(len(k.Arguments)), s.c())
	return failure("launch", "kernel", int(code))
}

// Captured returns the node of the call that was captured last; only inside Capture.
func (s *Stream) Captured() (Node, error) {
	var node C.ei_cuda_node
	code := C.captured(s.c(), &node)
	return Node(node), failure("capture", "graph node", int(code))
}

// Wait makes later work of the stream wait for the event.
func (s *Stream) Wait(e *Event) error {
	return s.device.Do(func() error { return wrap("wait", "event", s.stream.Wait(e.event, 0)) })
}

// Synchronize blocks until the stream's work is done; an error may come from any of that work.
func (s *Stream) Synchronize() error {
	return failure("synchronize", "stream", int(C.synchronize(context(s.device), s.c())))
}

// Close gives the stream back; work that is in it still runs. It is idempotent and does nothing on nil.
func (s *Stream) Close() error {
	if s == nil || s.stream == (cu.Stream{}) {
		return nil
	}
	return s.device.Do(func() error { return wrap("close", "stream", s.stream.Destroy()) })
}

func (s *Stream) c() C.ei_cuda_stream { return C.ei_cuda_stream(pointer(&s.stream)) }

func context(d *cuda.Device) C.ei_cuda_context { return C.ei_cuda_context(d.Context()) }

// pointer reads the one field, a driver handle, that package cu does not export.
func pointer(handle *cu.Stream) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(handle)) }
