package cascade

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// region is the part of a picture that shows a box, with a share of its sides more on each side, cut at the picture's borders. It begins
// and ends at even pixels, because those of some formats come in pairs. It is empty for a box outside of the picture.
func region(b postprocess.Box, margin float32, width, height int) image.Rectangle {
	dx, dy := margin*b.Width(), margin*b.Height()
	left, right := side(b.X1-dx, b.X2+dx, width)
	top, bottom := side(b.Y1-dy, b.Y2+dy, height)
	return image.Rect(left, top, right, bottom)
}

// side is the even pixels from and to which an interval reaches; both 0 for one that is none.
func side(low, high float32, size int) (from, to int) {
	if !(low < high) || !(high > 0) || !(low < float32(size)) {
		return 0, 0
	}
	from = int(max(low, 0)) &^ 1
	to = min(size, int(math.Ceil(float64(min(high, float32(size)))))+1) &^ 1
	if to-from < 2 {
		return 0, 0
	}
	return from, to
}

// bytes is how much memory a copy of a part takes.
func bytes(format engine.PixelFormat, part image.Rectangle) int {
	return format.RowBytes(part.Dx()) * format.Rows(part.Dy())
}

// cut copies a part of a picture to dst, which has room for it, rows without padding.
func cut(dst []byte, picture *engine.Image, part image.Rectangle) engine.Image {
	format, row := picture.Format, picture.Format.RowBytes(part.Dx())
	at := rows(dst, picture.Data, picture.Stride, part.Min.Y, part.Max.Y, format.RowBytes(part.Min.X), row)
	if format == engine.NV12 { // the colours of two rows and two columns lie together behind all the rows
		colours := picture.Data[picture.Stride*picture.Height:]
		at += rows(dst[at:], colours, picture.Stride, part.Min.Y/2, part.Max.Y/2, part.Min.X, row)
	}
	return engine.Image{Data: dst[:at:at], Width: part.Dx(), Height: part.Dy(), Stride: row, Format: format}
}

// rows copies that many bytes of some rows, and gives their number.
func rows(dst, src []byte, stride, from, to, offset, length int) (copied int) {
	for y := from; y < to; y++ {
		copied += copy(dst[copied:], src[y*stride+offset:][:length])
	}
	return copied
}
