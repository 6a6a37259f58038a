package gstreamer

// #cgo LDFLAGS: -lcuda
// #include <stdlib.h>
//
// #include "nvmm.h"
import "C"

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// SurfaceLibraryEnvironment is the environment variable with the path of libnvbufsurface.
const SurfaceLibraryEnvironment = "EDGE_INFER_LIBNVBUFSURFACE"

// NVMMOptions configures OpenNVMMDecoder.
type NVMMOptions struct {
	Codec      capture.Codec
	LowLatency bool // as in DecoderOptions
	MaxPixels  int
	// GPU is the number of the GPU in the driver's order.
	GPU int
	// Copied counts the bytes of images that are copied to host memory; may be nil.
	Copied *atomic.Int64
}

// nvmm is the GPU that reads a decoder's images. Decoder and frames share it.
type nvmm struct {
	*cuda.Shared
	copied *atomic.Int64
}

// OpenNVMMDecoder starts the decoder of an Orin or Xavier. Its frames are NV12 images in the decoder's own memory, which CUDA reads in
// place; a frame that is not released keeps one of the decoder's few buffers. It ends with the context. Errors are *capture.Error that is
// ErrUnavailable. It has been tested with stand-ins for NVIDIA's libraries only.
func OpenNVMMDecoder(ctx context.Context, options NVMMOptions) (*Decoder, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if !HasElement(nvidia) {
		return nil, missing(nvidia)
	}
	device, err := cuda.Open(options.GPU)
	if err != nil {
		return nil, &capture.Error{Op: "open", Kind: capture.ErrUnavailable, Message: "NVMM", Err: err}
	}
	n := &nvmm{cuda.Share(device), options.Copied}
	if err := loadNVMM(); err != nil {
		n.Release()
		return nil, err
	}
	own := DecoderOptions{Codec: options.Codec, Element: nvidia, LowLatency: options.LowLatency, MaxPixels: options.MaxPixels, nvmm: true}
	d, err := OpenDecoder(ctx, own)
	if err != nil {
		n.Release()
		return nil, err
	}
	d.nvmm = n
	return d, nil
}

// loadNVMM opens NVIDIA's libraries. The CUDA driver must be open.
func loadNVMM() error {
	paths := []string{"libnvbufsurface.so.1.0.0", "libnvbufsurface.so"}
	if path := os.Getenv(SurfaceLibraryEnvironment); path != "" {
		paths = []string{path}
	}
	var failure C.ei_nvmm_error
	for _, path := range paths {
		name := C.CString(path)
		code := C.ei_nvmm_load(name, &failure)
		C.free(unsafe.Pointer(name))
		if code == 0 {
			return nil
		}
	}
	return unavailable("no NVMM: " + C.GoString(&failure.message[0]))
}

func (n *nvmm) context() C.ei_cuda_context { return C.ei_cuda_context(n.Context()) }

// surface is an engine.DeviceMemory that lends a frame an image of the decoder. A pool keeps it for further frames.
type surface struct {
	nvmm *nvmm
	mu   sync.Mutex
	held unsafe.Pointer // nil if it has no image
}

// alloc is a capture.DeviceAlloc. The memory comes with each image.
func (n *nvmm) alloc(int) (engine.DeviceMemory, uint64, func(), error) {
	n.Retain()
	s := &surface{nvmm: n}
	return s, 0, s.free, nil
}

func (s *surface) free() {
	s.Return()
	s.nvmm.Release()
}

// Return implements capture.Borrowed.
func (s *surface) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		C.ei_nvmm_release(s.held)
		s.held = nil
	}
}

// GPU implements engine.DeviceMemory.
func (s *surface) GPU() int { return s.nvmm.Facts().Ordinal }

// Ready implements engine.DeviceMemory. The decoder delivers images that are ready.
func (s *surface) Ready() unsafe.Pointer { return nil }

// Copy implements engine.DeviceMemory.
func (s *surface) Copy(dst []byte, from uint64, pitch, length, rows int) error {
	if rows == 0 || length == 0 {
		return nil
	}
	_ = dst[rows*length-1]
	var failure C.ei_nvmm_error
	if C.ei_nvmm_copy(s.nvmm.context(), unsafe.Pointer(&dst[0]), C.ei_cuda_pointer(from), C.size_t(pitch), C.size_t(length), C.size_t(rows),
		&failure) != 0 {
		return errors.New("copy an image from the GPU: " + C.GoString(&failure.message[0]))
	}
	if s.nvmm.copied != nil {
		s.nvmm.copied.Add(int64(rows * length))
	}
	return nil
}

// nextSurface returns the image that waits, in the decoder's memory.
func (p *Pipeline) nextSurface(lend capture.Lender, n *nvmm) (capture.Frame, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.pull(0); err != nil {
		return capture.Frame{}, err
	}
	captured, seq := p.captured, p.seq
	p.captured = 0
	p.seq++
	width, height := int(p.image.width), int(p.image.height)
	err := capture.CheckSize(engine.NV12, width, height, p.maxPixels)
	if err == nil && (p.image.format != C.EI_GST_NV12 || p.image.device_memory == 0) {
		err = formatError("read", C.GoString(p.image.caps_name))
	}
	var f capture.Frame
	if err == nil {
		f, err = lend.DeviceFrame(n.alloc, engine.NV12, width, height)
	}
	if err != nil {
		C.ei_gst_drop(p.handle)
		return capture.Frame{}, err
	}
	memory := f.Device.Memory.(*surface)
	var failure C.ei_nvmm_error
	held := C.ei_nvmm_take(p.handle, n.context(), &p.surface, &failure)
	if held == nil {
		f.Release()
		return capture.Frame{}, &capture.Error{Op: "read", Kind: capture.ErrUnavailable, Message: "NVMM: " + C.GoString(&failure.message[0])}
	}
	memory.mu.Lock()
	memory.held = held
	memory.mu.Unlock()
	f.Device.Address, f.Device.Chroma, f.Stride = uint64(p.surface.luma), uint64(p.surface.chroma), int(p.surface.pitch)
	f.Seq, f.Captured = seq, captured
	return f, nil
}
