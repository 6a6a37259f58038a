package web

import (
	"fmt"
	"image"
	"runtime"
	"slices"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
)

// jpegQuality is enough for a picture to look at.
const jpegQuality = 75

// encoder makes JPEGs of copied frames and keeps its memory from one to the next. One goroutine uses it.
type encoder struct {
	colour, small gocv.Mat
	made          bool
}

// load takes the frame over as a BGR or gray picture that is at most width pixels wide.
func (e *encoder) load(r *raw, width int) error {
	if !e.made {
		e.colour, e.small, e.made = gocv.NewMat(), gocv.NewMat(), true
	}
	rows, kind, conversion := r.height, gocv.MatTypeCV8UC3, gocv.ColorConversionCode(-1)
	switch r.format {
	case capture.BGR:
	case capture.BGRx:
		kind, conversion = gocv.MatTypeCV8UC4, gocv.ColorBGRAToBGR
	case capture.NV12:
		rows, kind, conversion = r.format.Rows(r.height), gocv.MatTypeCV8UC1, gocv.ColorYUVToBGRNV12
	case capture.YUYV:
		kind, conversion = gocv.MatTypeCV8UC2, gocv.ColorYUVToBGRYUY2
	case capture.GRAY8:
		kind = gocv.MatTypeCV8UC1
	default:
		return fmt.Errorf("pixels of format %v", r.format)
	}
	if len(r.pixels) == 0 {
		return fmt.Errorf("picture of %dx%d", r.width, r.height)
	}
	// The matrix keeps the address of Go memory, which has to stay where it is as long as the matrix does.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&r.pixels[0])
	source, err := gocv.NewMatFromBytes(rows, r.width, kind, r.pixels)
	if err != nil {
		return fmt.Errorf("wrap picture: %w", err)
	}
	defer source.Close()
	picture := source
	if conversion >= 0 {
		if err := gocv.CvtColor(source, &e.colour, conversion); err != nil {
			return fmt.Errorf("convert %v picture of %dx%d: %w", r.format, r.width, r.height, err)
		}
		picture = e.colour
	}
	if r.width <= width {
		if err := picture.CopyTo(&e.small); err != nil {
			return fmt.Errorf("copy picture: %w", err)
		}
		return nil
	}
	size := image.Pt(width, max(1, r.height*width/r.width))
	if err := gocv.Resize(picture, &e.small, size, 0, 0, gocv.InterpolationArea); err != nil {
		return fmt.Errorf("shrink picture: %w", err)
	}
	return nil
}

// jpeg encodes what load took over.
func (e *encoder) jpeg() ([]byte, error) {
	buffer, err := gocv.IMEncodeWithParams(gocv.JPEGFileExt, e.small, []int{gocv.IMWriteJpegQuality, jpegQuality})
	if err != nil {
		return nil, fmt.Errorf("encode picture: %w", err)
	}
	defer buffer.Close()
	return slices.Clone(buffer.GetBytes()), nil
}

func (e *encoder) close() {
	if e.made {
		_ = e.colour.Close()
		_ = e.small.Close()
	}
}
