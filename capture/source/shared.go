package source

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// sharedImages are images in memory that a camera's process writes and this one reads: a header of one page per slot, then the slots.
type sharedImages struct {
	memory []byte
	bytes  int // of a slot, a multiple of the page size
	next   uint64
}

// sharedSlots lets one image be written, one wait and one be read.
const sharedSlots = 4

const pageSize = 4096

// slotHeader describes the image of a slot. Its fields but state are valid while state is slotReady, and belong to whom state names.
type slotHeader struct {
	state         atomic.Uint32
	format        uint32
	width, height uint32
	captured      int64 // CLOCK_MONOTONIC, nanoseconds
	number        uint64
}

const (
	slotFree  = iota // the camera's process may write into it
	slotReady        // this process may read it
)

// newSharedImages creates memory for images of up to so many bytes. The caller closes the file, which the camera's process maps.
func newSharedImages(bytes int) (*sharedImages, *os.File, error) {
	fd, err := unix.MemfdCreate("edge-infer camera", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fd), "camera memory")
	slot := (bytes + pageSize - 1) / pageSize * pageSize
	if err := file.Truncate(int64(sharedSlots * (pageSize + slot))); err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	s, err := mapSharedImages(file)
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return s, file, nil
}

// mapSharedImages maps the memory of newSharedImages.
func mapSharedImages(file *os.File) (*sharedImages, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := int(info.Size())
	slot := size/sharedSlots - pageSize
	if slot <= 0 || size%(sharedSlots*pageSize) != 0 {
		return nil, fmt.Errorf("memory of %d bytes holds no images", size)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &sharedImages{memory: memory, bytes: slot}, nil
}

func (s *sharedImages) close() {
	if s.memory != nil {
		_ = unix.Munmap(s.memory)
		s.memory = nil
	}
}

func (s *sharedImages) header(slot int) *slotHeader {
	return (*slotHeader)(unsafe.Pointer(&s.memory[slot*pageSize]))
}

func (s *sharedImages) data(slot int) []byte {
	begin := sharedSlots*pageSize + slot*s.bytes
	return s.memory[begin : begin+s.bytes : begin+s.bytes]
}

// Frame lends a free slot to the pipeline of the camera's process. It implements capture.Lender together with DeviceFrame.
func (s *sharedImages) Frame(format engine.PixelFormat, width, height int) (capture.Frame, error) {
	stride := format.RowBytes(width)
	size := stride * format.Rows(height)
	if size > s.bytes {
		return capture.Frame{}, &capture.Error{
			Op: "read", Kind: capture.ErrFormat, Message: fmt.Sprintf("an image of %dx%d is larger than requested", width, height),
		}
	}
	for slot := range sharedSlots {
		if s.header(slot).state.Load() == slotFree {
			return capture.Frame{Data: s.data(slot)[:size:size], Width: width, Height: height, Stride: stride, Format: format}, nil
		}
	}
	return capture.Frame{}, capture.ErrNoBuffer
}

var errHostOnly = errors.New("a camera's process has no GPU memory")

// DeviceFrame implements capture.Lender.
func (s *sharedImages) DeviceFrame(capture.DeviceAlloc, engine.PixelFormat, int, int) (capture.Frame, error) {
	return capture.Frame{}, errHostOnly
}

// put passes a frame of Frame on.
func (s *sharedImages) put(f *capture.Frame) {
	for slot := range sharedSlots {
		if unsafe.SliceData(s.data(slot)) != unsafe.SliceData(f.Data) {
			continue
		}
		h := s.header(slot)
		h.format, h.width, h.height = uint32(f.Format), uint32(f.Width), uint32(f.Height)
		h.captured = f.Captured
		s.next++
		h.number = s.next
		h.state.Store(slotReady)
	}
}

// take returns the slot with the oldest image that is ready, or with the newest one, in which case the older ones are freed; -1 if none is
// ready.
func (s *sharedImages) take(newest bool) int {
	chosen := -1
	for slot := range sharedSlots {
		h := s.header(slot)
		if h.state.Load() != slotReady {
			continue
		}
		rejected := chosen
		if chosen < 0 || newest == (h.number > s.header(chosen).number) {
			chosen = slot
		} else {
			rejected = slot
		}
		if newest && rejected >= 0 {
			s.free(rejected)
		}
	}
	return chosen
}

// image returns the image of a slot that take has returned, or an error if the other process has written nonsense.
func (s *sharedImages) image(slot int) (capture.Frame, error) {
	h := s.header(slot)
	f := capture.Frame{
		Width: int(h.width), Height: int(h.height), Format: engine.PixelFormat(h.format), Captured: h.captured, Seq: h.number - 1,
	}
	if err := capture.CheckSize(f.Format, f.Width, f.Height, s.bytes); err != nil {
		return capture.Frame{}, err
	}
	f.Stride = f.Format.RowBytes(f.Width)
	size := f.Stride * f.Format.Rows(f.Height)
	if size > s.bytes {
		return capture.Frame{}, &capture.Error{Op: "read", Kind: capture.ErrImage, Message: "the camera's process described no image"}
	}
	f.Data = s.data(slot)[:size:size]
	return f, nil
}

// free gives a slot back to the camera's process.
func (s *sharedImages) free(slot int) { s.header(slot).state.Store(slotFree) }
