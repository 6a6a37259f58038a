package nvdec

// #include "decoder.h"
import "C"

import (
	"errors"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
)

// memory is an engine.DeviceMemory.
type memory struct {
	gpu     *gpu
	address C.ei_cuda_pointer
	ready   C.ei_cuda_event
}

// alloc is a capture.DeviceAlloc.
func (g *gpu) alloc(size int) (engine.DeviceMemory, uint64, func(), error) {
	m := &memory{gpu: g}
	var failure C.ei_nvdec_error
	if C.ei_nvdec_allocate(g.context(), C.size_t(size), &m.address, &m.ready, &failure) != 0 {
		return nil, 0, nil, errors.New(C.GoString(&failure.message[0]))
	}
	g.Retain()
	return m, uint64(m.address), m.free, nil
}

func (m *memory) free() {
	C.ei_nvdec_free(m.gpu.context(), m.address, m.ready)
	m.gpu.Release()
}

// GPU implements engine.DeviceMemory.
func (m *memory) GPU() int { return m.gpu.Facts().Ordinal }

// Ready implements engine.DeviceMemory.
func (m *memory) Ready() unsafe.Pointer { return unsafe.Pointer(m.ready) }

// Copy implements engine.DeviceMemory.
func (m *memory) Copy(dst []byte, from uint64, pitch, length, rows int) error {
	if rows == 0 || length == 0 {
		return nil
	}
	_ = dst[rows*length-1]
	var failure C.ei_nvdec_error
	if C.ei_nvdec_copy(m.gpu.context(), unsafe.Pointer(&dst[0]), C.ei_cuda_pointer(from), C.size_t(pitch), C.size_t(length), C.size_t(rows),
		m.ready, &failure) != 0 {
		return errors.New("copy an image from the GPU: " + C.GoString(&failure.message[0]))
	}
	if m.gpu.copied != nil {
		m.gpu.copied.Add(int64(rows * length))
	}
	return nil
}
