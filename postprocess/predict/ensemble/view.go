package ensemble

import (
	"image"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Padding around a smaller image, as a letterbox has it: grey without chroma.
const (
	grey       = 114
	colourless = 128
)

// draw renders a view of an image into a buffer, by its number, that the predictor reads without another copy.
func (a *Augmented) draw(number int, view View, from *engine.Image) (engine.Image, error) {
	if err := from.Check(); err != nil {
		return engine.Image{}, err
	}
	if from.OnDevice() {
		return engine.Image{}, a.refuse("submit", engine.ErrUnsupported, "views are made of images in host memory")
	}
	paired := from.Format == engine.NV12 || from.Format == engine.YUYV
	to := engine.Image{Width: view.side(from.Width, paired), Height: view.side(from.Height, paired), Format: from.Format}
	to.Stride = to.Format.RowBytes(to.Width)
	if to.Width > engine.MaxSide || to.Height > engine.MaxSide {
		return engine.Image{}, a.refuse("submit", engine.ErrShape, "image of %dx%d at scale %v, sides are at most %d", from.Width, from.Height,
			view.Scale, engine.MaxSide)
	}
	size := to.Stride * to.Format.Rows(to.Height)
	data, err := a.buffers.Bytes(a.Predictor, number, size)
	if err != nil {
		return engine.Image{}, err
	}
	to.Data = data
	for second := range planes(from.Format) {
		paint(planeOf(&to, second), planeOf(from, second), view.Flip)
	}
	return to, nil
}

// planes returns the number of planes of a format.
func planes(format engine.PixelFormat) int {
	if format == engine.NV12 {
		return 2
	}
	return 1
}

// plane is a plane of an image: rows of units, each of one pixel or of two that share their chroma.
type plane struct {
	data              []byte
	stride, row, rows int     // bytes, bytes used of them, number of rows
	unit              int     // bytes
	padding           [2]byte // alternating
	swap              bool    // mirroring swaps bytes 0 and 2 of a unit
}

func planeOf(im *engine.Image, second int) plane {
	p := plane{data: im.Data, stride: im.Stride, row: im.Format.RowBytes(im.Width), rows: im.Height, padding: [2]byte{grey, grey}}
	p.unit = im.Format.RowBytes(2) / 2
	switch {
	case im.Format == engine.YUYV:
		p.unit = 4
		p.padding = [2]byte{grey, colourless}
		p.swap = true
	case second > 0:
		p.data = im.Data[im.Stride*im.Height:]
		p.rows = im.Height / 2
		p.unit = 2
		p.padding = [2]byte{colourless, colourless}
	}
	return p
}

// paint copies a plane to the top left of one that is no smaller, mirrored if flip is set.
func paint(to, from plane, flip bool) {
	for y := range to.rows {
		row := to.data[y*to.stride : y*to.stride+to.row]
		if y >= from.rows {
			fill(row, to.padding)
			continue
		}
		source := from.data[y*from.stride : y*from.stride+from.row]
		if flip {
			mirror(row[:from.row], source, from.unit, from.swap)
		} else {
			copy(row, source)
		}
		fill(row[from.row:], to.padding)
	}
}

// side returns the side of the canvas on which the image appears at the view's scale.
func (v View) side(side int, even bool) int {
	if v.Scale == 0 {
		return side
	}
	side = int(math.Round(float64(side) / v.Scale))
	if even {
		side = (side + 1) &^ 1
	}
	return side
}

func fill(row []byte, with [2]byte) {
	for i := range row {
		row[i] = with[i%2]
	}
}

// mirror reverses a row of units of so many bytes.
func mirror(to, from []byte, unit int, swap bool) {
	for at := 0; at < len(from); at += unit {
		one := to[len(from)-at-unit:][:unit]
		copy(one, from[at:at+unit])
		if swap {
			one[0], one[2] = one[2], one[0]
		}
	}
}

// toOriginal maps a detection of a view to the original image of that size, which is at the top left of the canvas, mirrored in place.
func (v View) toOriginal(f *postprocess.Detection, width, height int) error {
	f.X1, f.X2 = max(f.X1, 0), min(f.X2, float32(width))
	f.Y1, f.Y2 = max(f.Y1, 0), min(f.Y2, float32(height))
	d := f.Detail
	if d != nil && d.Mask != nil {
		d.Mask.Bounds = d.Mask.Bounds.Intersect(image.Rect(0, 0, width, height))
	}
	if !v.Flip {
		return nil
	}
	wide := float32(width)
	f.X1, f.X2 = wide-f.X2, wide-f.X1
	if d == nil {
		return nil
	}
	if d.Mask != nil {
		mirrorMask(d.Mask, width)
	}
	if d.Oriented != nil {
		d.Oriented.X, d.Oriented.Angle = wide-d.Oriented.X, -d.Oriented.Angle
	}
	return mirrorKeypoints(d, wide)
}

func mirrorMask(m *postprocess.Mask, width int) {
	b := m.Bounds
	m.Bounds = image.Rect(width-b.Max.X, b.Min.Y, width-b.Min.X, b.Max.Y)
	m.X = float32(m.Width-1) - m.X - float32(width-1)*m.StepX
	for row := range m.Height {
		line := m.Logits[row*m.Width : (row+1)*m.Width]
		slices.Reverse(line)
	}
}

func mirrorKeypoints(d *postprocess.Detail, width float32) error {
	if len(d.Keypoints) == 0 {
		return nil
	}
	if d.Skeleton == nil || !d.Skeleton.SwapSides(d.Keypoints) {
		return errFlip
	}
	for i := range d.Keypoints {
		d.Keypoints[i].X = width - d.Keypoints[i].X
	}
	return nil
}
