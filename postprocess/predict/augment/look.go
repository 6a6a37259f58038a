package augment

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// grey is what a network sees around a picture, as a letterbox has it.
const grey = 114

// draw makes the picture of a look, in memory that the predictor reads without another copy. number is that of the memory.
func (a *Augmented) draw(number int, look Look, from *engine.Image) (engine.Image, error) {
	if err := from.Check(); err != nil {
		return engine.Image{}, err
	}
	step := from.Format.RowBytes(2) / 2
	if from.Format == engine.NV12 || from.Format == engine.YUYV {
		return engine.Image{}, a.refuse("submit", engine.ErrUnsupported, "%v pictures cannot be mirrored or made smaller (convert them to BGR)",
			from.Format)
	}
	to := engine.Image{Width: look.side(from.Width), Height: look.side(from.Height), Format: from.Format}
	to.Stride = to.Format.RowBytes(to.Width)
	if to.Width > engine.MaxSide || to.Height > engine.MaxSide {
		return engine.Image{}, a.refuse("submit", engine.ErrShape, "picture of %dx%d at scale %v, sides are at most %d", from.Width, from.Height,
			look.Scale, engine.MaxSide)
	}
	size := to.Stride * to.Height
	for len(a.copies) <= number {
		a.copies = append(a.copies, nil)
	}
	if b := a.copies[number]; b == nil || len(b.Data) < size {
		if b != nil {
			b.Free()
			a.copies[number] = nil
		}
		b, err := a.Alloc(size)
		if err != nil {
			return engine.Image{}, err
		}
		a.copies[number] = b
	}
	to.Data = a.copies[number].Data[:size]
	own := from.Format.RowBytes(from.Width)
	for y := range to.Height {
		row := to.Data[y*to.Stride : (y+1)*to.Stride]
		if y >= from.Height {
			fill(row)
			continue
		}
		source := from.Data[y*from.Stride : y*from.Stride+own]
		if look.Flip {
			mirror(row[:own], source, step)
		} else {
			copy(row, source)
		}
		fill(row[own:])
	}
	return to, nil
}

// side is how large the canvas is on which a side of the picture appears at the look's scale.
func (l Look) side(side int) int {
	if l.Scale == 0 {
		return side
	}
	return int(math.Round(float64(side) / l.Scale))
}

func fill(row []byte) {
	for i := range row {
		row[i] = grey
	}
}

// mirror writes a row of pixels of so many bytes the other way round.
func mirror(to, from []byte, step int) {
	for at := 0; at < len(from); at += step {
		copy(to[len(from)-at-step:], from[at:at+step])
	}
}

// back takes a finding of a look to the picture of that size. The picture is at the top left of a larger canvas, and mirrored in its place.
func (l Look) back(f *postprocess.Finding, width, height int) error {
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
	return mirrorKeypoints(d.Keypoints, wide)
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

// people is the number of COCO's keypoints: the nose, then eight pairs of a left and a right one.
const people = 17

func mirrorKeypoints(points []postprocess.Keypoint, width float32) error {
	if len(points) != 0 && len(points) != people {
		return errFlip
	}
	for i := range points {
		points[i].X = width - points[i].X
	}
	for i := 1; i < len(points); i += 2 {
		points[i], points[i+1] = points[i+1], points[i]
	}
	return nil
}
