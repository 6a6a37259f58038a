package jpegimage

import (
	"cmp"
	"fmt"
	"image"
	"runtime"
	"slices"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/engine"
)

// Encoder makes JPEGs, and keeps its memory from one to the next. One goroutine uses it.
type Encoder struct {
	Quality  int // 1 to 100
	MaxWidth int // in pixels, 0 for any; wider images are shrunk

	colour, loaded gocv.Mat
	made           bool
	mosaic         mosaic
}

// Load takes a part of the image over as a BGR or gray one, without what is hidden; the pixels are not needed any more when it returns.
// After Pixels.CopySmall the part must be all of it.
func (e *Encoder) Load(p *Pixels, part image.Rectangle) error {
	if !e.made {
		e.colour, e.loaded, e.made = gocv.NewMat(), gocv.NewMat(), true
	}
	kind, conversion := gocv.MatTypeCV8UC3, gocv.ColorConversionCode(-1)
	switch p.Format {
	case engine.BGR:
	case engine.BGRx:
		kind, conversion = gocv.MatTypeCV8UC4, gocv.ColorBGRAToBGR
	case engine.NV12:
		kind, conversion = gocv.MatTypeCV8UC1, gocv.ColorYUVToBGRNV12
	case engine.YUYV:
		kind, conversion = gocv.MatTypeCV8UC2, gocv.ColorYUVToBGRYUY2
	case engine.GRAY8:
		kind = gocv.MatTypeCV8UC1
	default:
		return fmt.Errorf("pixels of format %v", p.Format)
	}
	height := cmp.Or(p.rows, p.Height)
	rows := p.Format.Rows(height)
	if len(p.Data) == 0 || len(p.Data) < rows*p.Format.RowBytes(p.Width) {
		return fmt.Errorf("%d bytes for a %v image of %dx%d", len(p.Data), p.Format, p.Width, p.Height)
	}
	if part = part.Intersect(image.Rect(0, 0, p.Width, p.Height)); part.Empty() {
		return fmt.Errorf("no pixel of an image of %dx%d", p.Width, p.Height)
	}
	// The matrix keeps the address of Go memory, which has to stay where it is as long as the matrix does.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&p.Data[0])
	source, err := gocv.NewMatFromBytes(rows, p.Width, kind, p.Data)
	if err != nil {
		return fmt.Errorf("wrap image: %w", err)
	}
	defer source.Close()
	whole := source
	if conversion >= 0 {
		if err := gocv.CvtColor(source, &e.colour, conversion); err != nil {
			return fmt.Errorf("convert %v image of %dx%d: %w", p.Format, p.Width, p.Height, err)
		}
		whole = e.colour
	}
	if err := e.hide(&whole, p); err != nil {
		return err
	}
	inData := part
	if height != p.Height {
		inData = image.Rect(0, 0, p.Width, height)
	}
	cut := whole.Region(inData)
	defer cut.Close()
	return e.fit(cut, part.Dx(), part.Dy())
}

// hide paints over what is hidden in the whole image. A copy that is loaded for several parts is painted again, with the same cells.
func (e *Encoder) hide(whole *gocv.Mat, p *Pixels) error {
	if len(p.regions) == 0 && len(p.boxes) == 0 {
		return nil
	}
	data, err := whole.DataPtrUint8()
	if err != nil {
		return fmt.Errorf("hide private parts: %w", err)
	}
	e.mosaic.apply(data, whole.Channels(), p)
	return nil
}

// fit keeps the image, smaller where it is too wide.
func (e *Encoder) fit(img gocv.Mat, width, height int) error {
	if e.MaxWidth == 0 || width <= e.MaxWidth {
		if err := img.CopyTo(&e.loaded); err != nil {
			return fmt.Errorf("copy image: %w", err)
		}
		return nil
	}
	size := image.Pt(e.MaxWidth, max(1, height*e.MaxWidth/width))
	if err := gocv.Resize(img, &e.loaded, size, 0, 0, gocv.InterpolationArea); err != nil {
		return fmt.Errorf("shrink image: %w", err)
	}
	return nil
}

// Size returns the width and height in pixels of what Load took over.
func (e *Encoder) Size() (width, height int) { return e.loaded.Cols(), e.loaded.Rows() }

// BGR copies what Load took over into an image of three channels.
func (e *Encoder) BGR(to *gocv.Mat) error {
	var err error
	if e.loaded.Channels() == 1 {
		err = gocv.CvtColor(e.loaded, to, gocv.ColorGrayToBGR)
	} else {
		err = e.loaded.CopyTo(to)
	}
	if err != nil {
		return fmt.Errorf("copy image: %w", err)
	}
	return nil
}

// JPEG encodes what Load took over.
func (e *Encoder) JPEG() ([]byte, error) {
	buffer, err := gocv.IMEncodeWithParams(gocv.JPEGFileExt, e.loaded, []int{gocv.IMWriteJpegQuality, e.Quality})
	if err != nil {
		return nil, fmt.Errorf("encode image: %w", err)
	}
	defer buffer.Close()
	return slices.Clone(buffer.GetBytes()), nil
}

// Close frees the memory. The encoder may be used again.
func (e *Encoder) Close() {
	if e.made {
		_ = e.colour.Close()
		_ = e.loaded.Close()
		e.made = false
	}
}
