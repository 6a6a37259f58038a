package enginetest

import (
	"errors"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
)

// DeviceMemory stands in for a GPU's memory: its device addresses are those of Data.
type DeviceMemory struct {
	Data   []byte
	Number int   // of the GPU
	Copied int   // bytes that were copied to the host
	Fail   error // of Copy
}

// Image returns an image that occupies the memory from its first byte on.
func (m *DeviceMemory) Image(format engine.PixelFormat, width, height, stride int) engine.Image {
	start := uint64(uintptr(unsafe.Pointer(&m.Data[0])))
	device := engine.Device{Memory: m, Address: start}
	if format == engine.NV12 {
		device.Chroma = start + uint64(stride*height)
	}
	return engine.Image{Width: width, Height: height, Stride: stride, Format: format, Device: device}
}

// GPU implements engine.DeviceMemory.
func (m *DeviceMemory) GPU() int { return m.Number }

// Ready implements engine.DeviceMemory.
func (m *DeviceMemory) Ready() unsafe.Pointer { return nil }

// Copy implements engine.DeviceMemory.
func (m *DeviceMemory) Copy(dst []byte, from uint64, pitch, length, rows int) error {
	if m.Fail != nil {
		return m.Fail
	}
	offset := int(from - uint64(uintptr(unsafe.Pointer(&m.Data[0]))))
	if offset < 0 || offset+(rows-1)*pitch+length > len(m.Data) {
		return errors.New("outside of the memory")
	}
	for y := range rows {
		m.Copied += copy(dst[y*length:(y+1)*length], m.Data[offset+y*pitch:])
	}
	return nil
}
