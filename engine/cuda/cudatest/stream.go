// Package cudatest drives events and graphs of a GPU from Go for tests: of the kernels, of the driver calls in ei_cuda.h that a frame
// takes, of stand-ins for a driver, and for the self-test on its owner's machine. The engines make these calls from C++.
package cudatest

// #include "../ei_cuda.h"
//
// static int captured(ei_cuda_stream stream, ei_cuda_node *node) { return ei_cuda_captured(stream, node); }
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine/cuda"
)

// Stream is one whose work can be recorded, and that waits for events.
type Stream struct {
	*cuda.Stream
	device *cuda.Device
}

// NewStream makes a stream that does not wait for the default stream.
func NewStream(d *cuda.Device) (*Stream, error) {
	s, err := d.NewStream()
	if err != nil {
		return nil, err
	}
	return &Stream{Stream: s, device: d}, nil
}

// Captured returns the node of the call that was captured last; only inside Capture.
func (s *Stream) Captured() (Node, error) {
	var node C.ei_cuda_node
	code := C.captured(s.c(), &node)
	return Node(node), failure("capture", "graph node", int(code))
}

// Wait makes later work of the stream wait for the event.
func (s *Stream) Wait(e *Event) error {
	return s.device.Do(func() error { return wrap("wait", "event", s.Native().Wait(e.event, 0)) })
}

func (s *Stream) c() C.ei_cuda_stream {
	native := s.Native()
	return C.ei_cuda_stream(pointer(&native))
}

func context(d *cuda.Device) C.ei_cuda_context { return C.ei_cuda_context(d.Context()) }

// pointer reads the one field, a driver handle, that package cu does not export.
func pointer(handle *cu.Stream) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(handle)) }
