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

// Image is one image the engine reads: host memory in Data, or a GPU's memory in Device. Data must come from Alloc of the same engine for
// zero copy; other memory is copied once.
type Image struct {
	Data                  []byte // nil in a GPU's memory
	Width, Height, Stride int    // pixels, pixels, bytes from row to row
	Format                PixelFormat
	Device                Device // zero in host memory
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
	case im.OnDevice():
		return im.Device.check(im.Format)
	case len(im.Data) < im.Stride*(im.Format.Rows(im.Height)-1)+im.Format.RowBytes(im.Width):
		return bad("%d bytes for a %v image of %dx%d with stride %d", len(im.Data), im.Format, im.Width, im.Height, im.Stride)
	}
	return nil
}

// HasParts reports whether Part is possible. It is not for NV12 in host memory, whose colour plane lies at a distance that follows from
// the height; use CopyPart.
func (im *Image) HasParts() bool { return im.Format != NV12 || im.OnDevice() }

// Part returns a view of a part of the image. The part must lie within the image and, for subsampled formats, start and end at even pixels.
func (im *Image) Part(part image.Rectangle) Image {
	from := part.Min.Y*im.Stride + im.Format.RowBytes(part.Min.X)
	if im.OnDevice() {
		view := Image{Width: part.Dx(), Height: part.Dy(), Stride: im.Stride, Format: im.Format, Device: im.Device}
		view.Device.Address += uint64(from)
		if im.Format == NV12 {
			view.Device.Chroma += uint64(part.Min.Y/2*im.Stride + part.Min.X)
		}
		return view
	}
	end := (part.Max.Y-1)*im.Stride + im.Format.RowBytes(part.Max.X)
	return Image{Data: im.Data[from:end:end], Width: part.Dx(), Height: part.Dy(), Stride: im.Stride, Format: im.Format}
}

// PartBytes returns the number of bytes that CopyPart writes.
func (im *Image) PartBytes(part image.Rectangle) int {
	return im.Format.RowBytes(part.Dx()) * im.Format.Rows(part.Dy())
}

// CopyPart copies a part of an image to dst in host memory, which must hold PartBytes, without row padding. The part must lie within the
// image and start and end at even pixels for subsampled formats. Only images in a GPU's memory can fail; the call waits for them.
func (im *Image) CopyPart(dst []byte, part image.Rectangle) (Image, error) {
	return im.copyPlanes(dst, part, 1)
}

// CopyEvery copies every step-th row of an image, with its colours, to dst in host memory, without row padding, for images that are shrunk
// afterwards. dst must hold RowsOf(step) rows. step is from 1 to half of the height.
func (im *Image) CopyEvery(dst []byte, step int) (Image, error) {
	return im.copyPlanes(dst, im.bounds(), step)
}

// RowsOf returns the number of rows that CopyEvery copies with a step. It is even for NV12, whose colours are stored for pairs of rows.
func (im *Image) RowsOf(step int) int {
	if im.Format == NV12 {
		return im.Height / step &^ 1
	}
	return im.Height / step
}

// copyPlanes copies every step-th row of a part, which is the whole image unless step is 1.
func (im *Image) copyPlanes(dst []byte, part image.Rectangle, step int) (Image, error) {
	row, rows, first := im.Format.RowBytes(part.Dx()), part.Dy(), step/2 // the row in the middle of a step
	if step > 1 {
		rows = im.RowsOf(step)
	}
	at, offset := rows*row, (part.Min.Y+first)*im.Stride+im.Format.RowBytes(part.Min.X)
	if err := im.copyRows(dst, false, offset, row, rows, step); err != nil {
		return Image{}, err
	}
	if im.Format == NV12 {
		if err := im.copyRows(dst[at:], true, (part.Min.Y/2+first)*im.Stride+part.Min.X, row, rows/2, step); err != nil {
			return Image{}, err
		}
		at += rows / 2 * row
	}
	return Image{Data: dst[:at:at], Width: part.Dx(), Height: rows, Stride: row, Format: im.Format}, nil
}

// copyRows copies the given bytes of every step-th row from an offset into the image, or into its plane of NV12's colours.
func (im *Image) copyRows(dst []byte, chroma bool, offset, length, rows, step int) error {
	if im.OnDevice() {
		from := im.Device.Address
		if chroma {
			from = im.Device.Chroma
		}
		return im.Device.Memory.Copy(dst, from+uint64(offset), step*im.Stride, length, rows)
	}
	src := im.Data
	if chroma { // the plane follows the one of Y
		src = src[im.Stride*im.Height:]
	}
	for y := range rows {
		copy(dst[y*length:(y+1)*length], src[offset+y*step*im.Stride:])
	}
	return nil
}

// MaxSide is the longest accepted side of an image in pixels.
const MaxSide = 1 << 15

// maxStride prevents the size of an image from overflowing.
const maxStride = 1 << 30
