package augment

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// What a network sees around an image, as a letterbox has it: grey, and no colour.
const (
	grey       = 114
	colourless = 128
)

// draw makes the image of a look, in memory that the predictor reads without another copy. number is that of the memory.
func (a *Augmented) draw(number int, look View, from *engine.Image) (engine.Image, error) {
	if err := from.Check(); err != nil {
		return engine.Image{}, err
	}
	paired := from.Format == engine.NV12 || from.Format == engine.YUYV
	to := engine.Image{Width: look.side(from.Width, paired), Height: look.side(from.Height, paired), Format: from.Format}
	to.Stride = to.Format.RowBytes(to.Width)
	if to.Width > engine.MaxSide || to.Height > engine.MaxSide {
		return engine.Image{}, a.refuse("submit", engine.ErrShape, "image of %dx%d at scale %v, sides are at most %d", from.Width, from.Height,
			look.Scale, engine.MaxSide)
	}
	size := to.Stride * to.Format.Rows(to.Height)
	data, err := a.copies.Bytes(a.Predictor, number, size)
	if err != nil {
		return engine.Image{}, err
	}
	to.Data = data
	for second := range planes(from.Format) {
		paint(planeOf(&to, second), planeOf(from, second), look.Flip)
	}
	return to, nil
}

// planes is how many parts the memory of an image has.
func planes(format engine.PixelFormat) int {
	if format == engine.NV12 {
		return 2
	}
	return 1
}

// plane is such a part: rows of units, each of one pixel or of two that share their colour.
type plane struct {
	data              []byte
	stride, row, rows int     // bytes, bytes, and their number
	unit              int     // bytes
	around            [2]byte // the image, in turn
	swap              bool    // bytes 0 and 2 of a unit that is mirrored
}

func planeOf(im *engine.Image, second int) plane {
	p := plane{data: im.Data, stride: im.Stride, row: im.Format.RowBytes(im.Width), rows: im.Height, around: [2]byte{grey, grey}}
	p.unit = im.Format.RowBytes(2) / 2
	switch {
	case im.Format == engine.YUYV:
		p.unit, p.around, p.swap = 4, [2]byte{grey, colourless}, true
	case second > 0:
		p.data, p.rows, p.unit, p.around = im.Data[im.Stride*im.Height:], im.Height/2, 2, [2]byte{colourless, colourless}
	}
	return p
}

// paint copies a plane to the top left of one that is no smaller, mirrored in its place where that is asked for.
func paint(to, from plane, flip bool) {
	for y := range to.rows {
		row := to.data[y*to.stride : y*to.stride+to.row]
		if y >= from.rows {
			fill(row, to.around)
			continue
		}
		source := from.data[y*from.stride : y*from.stride+from.row]
		if flip {
			mirror(row[:from.row], source, from.unit, from.swap)
		} else {
			copy(row, source)
		}
		fill(row[from.row:], to.around)
	}
}

// side is how large the canvas is on which a side of the image appears at the look's scale.
func (l View) side(side int, even bool) int {
	if l.Scale == 0 {
		return side
	}
	side = int(math.Round(float64(side) / l.Scale))
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

// mirror writes a row of units of so many bytes the other way round.
func mirror(to, from []byte, unit int, swap bool) {
	for at := 0; at < len(from); at += unit {
		one := to[len(from)-at-unit:][:unit]
		copy(one, from[at:at+unit])
		if swap {
			one[0], one[2] = one[2], one[0]
		}
	}
}

// back takes a detection of a look to the image of that size. The image is at the top left of a larger canvas, and mirrored in its place.
func (l View) back(f *postprocess.Detection, width, height int) error {
	f.X1, f.X2 = max(f.X1, 0), min(f.X2, float32(width))
	f.Y1, f.Y2 = max(f.Y1, 0), min(f.Y2, float32(height))
	d := f.Detail
	if d != nil && d.Mask != nil {
		d.Mask.Bounds = d.Mask.Bounds.Intersect(image.Rect(0, 0, width, height))
	}
	if !l.Flip {
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
		for i, j := 0, len(line)-1; i < j; i, j = i+1, j-1 {
			line[i], line[j] = line[j], line[i]
		}
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
