package nvdec

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra
// #cgo LDFLAGS: -ldl -lpthread
// #include <stdlib.h>
// #include "decoder.h"
import "C"

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// LibraryEnvironment is the environment variable with the path of libnvcuvid.
const LibraryEnvironment = "EDGE_INFER_LIBNVCUVID"

// Options configures Open.
type Options struct {
	Codec capture.Codec // H264 or H265
	// GPU is the number of the GPU in the driver's order.
	GPU int
	// MaxPixels bounds the pixels of an image.
	MaxPixels int
	// Copied counts the bytes of images that are copied to host memory; may be nil.
	Copied *atomic.Int64
}

// Decoder is a capture.Decoder whose frames are NV12 images in the GPU's memory.
type Decoder struct {
	gpu     *gpu
	handle  *C.ei_nvdec
	options Options
	alloc   capture.DeviceAlloc
	times   capture.UnitTimes
	ended   bool
	seq     uint64
	image   C.ei_nvdec_image // scratch memory of Next
	failure C.ei_nvdec_error
}

// gpu is a device that a decoder and its frames share.
type gpu struct {
	*cuda.Shared
	copied *atomic.Int64
}

func (g *gpu) context() C.ei_cuda_context { return C.ei_cuda_context(g.Context()) }

// codecs are the library's numbers.
var codecs = map[capture.Codec]C.int{capture.H264: 4, capture.H265: 8}

// Open opens a decoder. Errors are *capture.Error that is ErrUnavailable: no library, no GPU, or one that does not decode the codec.
func Open(options Options) (*Decoder, error) {
	codec, ok := codecs[options.Codec]
	if !ok {
		return nil, unavailable("NVDEC is used for H.264 and H.265, not for " + options.Codec.String())
	}
	var failure C.ei_nvdec_error
	if err := openLibrary(&failure); err != nil {
		return nil, err
	}
	device, err := cuda.Open(options.GPU)
	if err != nil {
		return nil, &capture.Error{Op: "open", Kind: capture.ErrUnavailable, Message: "NVDEC", Err: err}
	}
	d := &Decoder{gpu: &gpu{cuda.Share(device), options.Copied}, options: options}
	d.alloc = d.gpu.alloc
	code := C.ei_nvdec_supports(d.gpu.context(), codec, &failure)
	if code == 0 {
		code = C.ei_nvdec_open(d.gpu.context(), codec, C.int64_t(options.MaxPixels), &d.handle, &failure)
	}
	if code != 0 {
		d.gpu.Release()
		return nil, unavailable("NVDEC: " + C.GoString(&failure.message[0]))
	}
	return d, nil
}

// Probe returns the codecs that a GPU decodes. Its errors are those of Open: no library, or no GPU.
func Probe(number int) ([]capture.Codec, error) {
	var failure C.ei_nvdec_error
	if err := openLibrary(&failure); err != nil {
		return nil, err
	}
	device, err := cuda.Open(number)
	if err != nil {
		return nil, err
	}
	var found []capture.Codec
	for _, codec := range []capture.Codec{capture.H264, capture.H265} {
		if C.ei_nvdec_supports(C.ei_cuda_context(device.Context()), codecs[codec], &failure) == 0 {
			found = append(found, codec)
		}
	}
	return found, device.Close()
}

func openLibrary(failure *C.ei_nvdec_error) error {
	path := os.Getenv(LibraryEnvironment)
	if path == "" {
		path = "libnvcuvid.so.1"
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if C.ei_nvdec_open_library(name, failure) != 0 {
		return unavailable("no NVDEC: " + C.GoString(&failure.message[0]))
	}
	return nil
}

func unavailable(message string) error {
	return &capture.Error{Op: "open", Kind: capture.ErrUnavailable, Message: message}
}

// Submit implements capture.Decoder.
func (d *Decoder) Submit(unit *capture.Unit) error {
	if d.handle == nil {
		return errClosed
	}
	if unit.Codec != d.options.Codec {
		message := "the video changed from " + d.options.Codec.String() + " to " + unit.Codec.String()
		return &capture.Error{Op: "decode", Kind: capture.ErrFormat, Message: message}
	}
	if len(unit.Data) == 0 {
		return nil
	}
	number := d.times.Add(unit)
	code := C.ei_nvdec_submit(d.handle, unsafe.Pointer(&unit.Data[0]), C.size_t(len(unit.Data)), C.int64_t(number), &d.failure)
	if code != 0 {
		return d.error("decode", code)
	}
	return nil
}

// End implements capture.Decoder.
func (d *Decoder) End() error {
	if d.handle == nil {
		return errClosed
	}
	d.ended = true
	if code := C.ei_nvdec_flush(d.handle, &d.failure); code != 0 {
		return d.error("decode", code)
	}
	return nil
}

// Next implements capture.Decoder.
func (d *Decoder) Next(lend capture.Lender) (capture.Frame, bool, error) {
	image := &d.image
	if d.handle == nil || C.ei_nvdec_peek(d.handle, image) == 0 {
		if d.ended {
			d.times.End()
			return capture.Frame{}, false, io.EOF
		}
		return capture.Frame{}, false, nil
	}
	number := uint64(image.timestamp)
	seq := d.seq
	d.seq++
	f, err := lend.DeviceFrame(d.alloc, engine.NV12, int(image.width), int(image.height))
	if err != nil {
		C.ei_nvdec_skip(d.handle)
		d.times.Take(number, nil)
		return capture.Frame{}, true, err
	}
	memory := f.Device.Memory.(*memory)
	code := C.ei_nvdec_take(d.handle, C.ei_cuda_pointer(f.Device.Address), C.size_t(f.Stride), memory.ready, &d.failure)
	if code != 0 {
		f.Release()
		d.times.Take(number, nil)
		return capture.Frame{}, true, d.error("decode", code)
	}
	f.Seq = seq
	d.times.Take(number, &f)
	return f, true, nil
}

// Lost implements capture.Decoder. It includes images that the GPU overwrote before they were taken.
func (d *Decoder) Lost() uint64 { return d.times.Lost() }

// Close implements capture.Decoder.
func (d *Decoder) Close() error {
	if d.handle == nil {
		return nil
	}
	C.ei_nvdec_close(d.handle)
	d.handle = nil
	d.gpu.Release()
	return nil
}

var errClosed = errors.New("the decoder is closed")

// error returns the error of a call on an open decoder.
func (d *Decoder) error(op string, code C.int) error {
	kind := capture.ErrUnavailable
	if code == C.EI_NVDEC_DAMAGED {
		kind = capture.ErrImage
	} else if code == C.EI_NVDEC_UNSUPPORTED {
		kind = capture.ErrFormat
	}
	return &capture.Error{Op: op, Kind: kind, Message: "NVDEC: " + C.GoString(&d.failure.message[0])}
}
