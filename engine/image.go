package engine

import (
	"fmt"
	"image"
)

// PixelFormat is the memory layout of an image. Conversion to the network's RGB planes is part of the letterbox.
type PixelFormat uint8

// The supported formats, 8 bits per sample.
const (
	BGR   PixelFormat = iota // 3 bytes per pixel, as OpenCV decodes
	BGRx                     // 4 bytes per pixel, the last one ignored
	NV12                     // height rows of Y, then height/2 rows of interleaved U and V, BT.601 limited range
	YUYV                     // 4 bytes hold two pixels: Y0 U Y1 V, BT.601 limited range
	GRAY8                    // 1 byte per pixel
)

// String returns the format's usual name.
func (f PixelFormat) String() string {
	switch f {
	case BGR:
		return "BGR"
	case BGRx:
		return "BGRx"
	case NV12:
		return "NV12"
	case YUYV:
		return "YUYV"
	case GRAY8:
		return "GRAY8"
	}
	return fmt.Sprintf("PixelFormat(%d)", uint8(f))
}

// MarshalText writes the format's name.
func (f PixelFormat) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// RowBytes is the length of one row without padding.
func (f PixelFormat) RowBytes(width int) int {
	switch f {
	case BGR:
		return 3 * width
	case BGRx:
		return 4 * width
	case YUYV:
		return 2 * width
	}
	return width
}

// Rows returns the number of rows of Stride bytes of an image with this height.
func (f PixelFormat) Rows(height int) int {
	if f == NV12 {
		return height + height/2
	}
	return height
}

// Image is one image the engine reads. Data must come from Alloc of the same engine for zero copy; other memory is copied once.
type Image struct {
	Data                  []byte
	Width, Height, Stride int // pixels, pixels, bytes from row to row
	Format                PixelFormat
}

// Check returns an *Error that is ErrShape if the image's size does not fit its memory or format.
func (im *Image) Check() error {
	bad := func(format string, arguments ...any) error {
		return &Error{Op: "submit", Kind: ErrShape, Message: fmt.Sprintf(format, arguments...)}
	}
	switch {
	case im.Format > GRAY8:
		return bad("unknown pixel format %d", im.Format)
	case im.Width < 1 || im.Height < 1 || im.Width > MaxSide || im.Height > MaxSide:
		return bad("image of %dx%d, sides must be 1 to %d", im.Width, im.Height, MaxSide)
	case im.Format == NV12 && (im.Width%2 != 0 || im.Height%2 != 0), im.Format == YUYV && im.Width%2 != 0:
		return bad("%v image of %dx%d needs even sides", im.Format, im.Width, im.Height)
	case im.Stride < im.Format.RowBytes(im.Width):
		return bad("row stride of %d bytes, %v at width %d needs %d", im.Stride, im.Format, im.Width, im.Format.RowBytes(im.Width))
	case im.Stride > maxStride:
		return bad("row stride of %d bytes, at most %d are read", im.Stride, maxStride)
	case len(im.Data) < im.Stride*(im.Format.Rows(im.Height)-1)+im.Format.RowBytes(im.Width):
		return bad("%d bytes for a %v image of %dx%d with stride %d", len(im.Data), im.Format, im.Width, im.Height, im.Stride)
	}
	return nil
}

// Part returns a view of a part of the image. The part must lie within the image and, for YUYV, start and end at even columns. NV12 has no
// such view, because its colour planes are separate; use CopyPart.
func (im *Image) Part(part image.Rectangle) Image {
	from := part.Min.Y*im.Stride + im.Format.RowBytes(part.Min.X)
	end := (part.Max.Y-1)*im.Stride + im.Format.RowBytes(part.Max.X)
	return Image{Data: im.Data[from:end:end], Width: part.Dx(), Height: part.Dy(), Stride: im.Stride, Format: im.Format}
}

// PartBytes returns the number of bytes that CopyPart writes.
func (im *Image) PartBytes(part image.Rectangle) int {
	return im.Format.RowBytes(part.Dx()) * im.Format.Rows(part.Dy())
}

// CopyPart copies a part of an image to dst, which must hold PartBytes, without row padding. The part must lie within the image and start
// and end at even pixels for subsampled formats.
func (im *Image) CopyPart(dst []byte, part image.Rectangle) Image {
	row := im.Format.RowBytes(part.Dx())
	at := copyRows(dst, im.Data, im.Stride, part.Min.Y, part.Max.Y, im.Format.RowBytes(part.Min.X), row)
	if im.Format == NV12 { // the UV plane follows the Y plane and has half its rows
		colours := im.Data[im.Stride*im.Height:]
		at += copyRows(dst[at:], colours, im.Stride, part.Min.Y/2, part.Max.Y/2, part.Min.X, row)
	}
	return Image{Data: dst[:at:at], Width: part.Dx(), Height: part.Dy(), Stride: row, Format: im.Format}
}

// copyRows copies the given bytes of each row and returns their number.
func copyRows(dst, src []byte, stride, from, to, offset, length int) (copied int) {
	for y := from; y < to; y++ {
		copied += copy(dst[copied:], src[y*stride+offset:][:length])
	}
	return copied
}

// MaxSide is the longest accepted side of an image in pixels.
const MaxSide = 1 << 15

// maxStride prevents the size of an image from overflowing.
const maxStride = 1 << 30
