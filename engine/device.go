package engine

import (
	"image"
	"unsafe"
)

// Device locates the pixels of an image in a GPU's memory.
type Device struct {
	// Memory owns the pixels; nil for an image in host memory.
	Memory DeviceMemory
	// Address is the device address of the first byte, Chroma that of the first byte of NV12's second plane; 0 for other formats.
	Address, Chroma uint64
}

// DeviceMemory is memory of a GPU that holds one image. Its methods are safe for concurrent use.
type DeviceMemory interface {
	// GPU is the number of the GPU in the driver's order.
	GPU() int
	// Ready is the CUevent after which the pixels may be read, nil if they may be read at once. It stays valid as long as the image.
	Ready() unsafe.Pointer
	// Copy waits until the pixels are ready and copies rows of the given length in bytes, which begin pitch bytes apart at a device address,
	// to dst without padding.
	Copy(dst []byte, from uint64, pitch, length, rows int) error
}

// DeviceReader is implemented by engines that read images in a GPU's memory. Others are given copies in host memory.
type DeviceReader interface {
	// ReadsDevice reports whether Submit accepts images in the memory of that GPU.
	ReadsDevice(gpu int) bool
}

// OnDevice reports whether the image is in a GPU's memory.
func (im *Image) OnDevice() bool { return im.Device.Memory != nil }

// ToHost copies an image from a GPU's memory to dst, which must hold PartBytes of it all, and returns the copy.
func (im *Image) ToHost(dst []byte) (Image, error) { return im.CopyPart(dst, im.bounds()) }

// HostBytes returns the number of bytes that ToHost writes.
func (im *Image) HostBytes() int { return im.PartBytes(im.bounds()) }

func (im *Image) bounds() image.Rectangle { return image.Rect(0, 0, im.Width, im.Height) }

// check returns an error if an address is missing.
func (d *Device) check(format PixelFormat) error {
	if d.Address == 0 || format == NV12 && d.Chroma == 0 {
		return &Error{Op: "submit", Kind: ErrShape, Message: "image without an address in the GPU's memory"}
	}
	return nil
}
