package decode

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// semantic makes the map of the highest scores, or of the class numbers of a network that has done so itself.
func (d *Decoder) semantic() error {
	memory, from := d.img.details, &d.parts[0]
	if memory == nil { // only impossible scores are looked for, and any is possible
		return nil
	}
	memory.places = postprocess.DenseMap{}
	grid := d.gridSize()
	cells := room(&memory.classes, grid.X*grid.Y)
	none := 0
	switch from.kind {
	case engine.Uint8:
		none = scan.ClassNumbers(cells, from.raw, d.numbers())
	case engine.Int32:
		none = scan.ClassNumbers(cells, view[int32](from.raw), d.numbers())
	case engine.Int64:
		none = scan.ClassNumbers(cells, view[int64](from.raw), d.numbers())
	default:
		if len(from.data) != d.now.Classes*len(cells) {
			return d.unfit()
		}
		none = scan.ArgmaxPlanes(cells, from.data, d.now.Classes)
	}
	m := d.inImage(grid)
	m.Classes = within(cells, grid, d.cropped)
	if d.img.stats.UnknownPixels = none; !d.asLabels {
		d.renumber(m.Classes)
	}
	memory.places = m
	return nil
}

// numbers bounds the class numbers that come from a network: by its labels, or by what a map can hold.
func (d *Decoder) numbers() int {
	if d.classes == 0 {
		return postprocess.NoClass
	}
	return d.classes - min(d.fit.Numbering.Class(0), 0)
}

// renumber makes class numbers of the labels of those of the network, and counts the places that have none.
func (d *Decoder) renumber(cells []uint8) {
	d.img.stats.UnknownPixels = 0
	for i, number := range cells {
		if number = d.byLabel[number]; number == postprocess.NoClass {
			d.img.stats.UnknownPixels++
		}
		cells[i] = number
	}
}

// depth makes the map of depths.
func (d *Decoder) depth() error {
	memory, from := d.img.details, &d.parts[0]
	if memory == nil {
		return nil
	}
	memory.places = postprocess.DenseMap{}
	grid := d.gridSize()
	if len(from.data) != grid.X*grid.Y {
		return d.unfit()
	}
	m := d.inImage(grid)
	m.Depths = room(&memory.depths, m.Width*m.Height)
	for row := range m.Height {
		at := (d.cropped.Min.Y+row)*grid.X + d.cropped.Min.X
		copy(m.Depths[row*m.Width:(row+1)*m.Width], from.data[at:])
	}
	memory.places = m
	return nil
}

// gridSize is the size of the map that the network gives: the last two dimensions.
func (d *Decoder) gridSize() image.Point {
	shape := d.shapes[0]
	return image.Pt(int(shape[len(shape)-1]), int(shape[len(shape)-2]))
}

// inImage is the map of the cells whose centres lie in the image, without what they say. The cells are those of d.cropped.
func (d *Decoder) inImage(grid image.Point) postprocess.DenseMap {
	t := &d.img.transform
	stepX, stepY := float32(grid.X)/float32(d.fit.Width), float32(grid.Y)/float32(d.fit.Height)
	left, right := inside(t.PadX, t.ScaleX*float32(d.img.width), stepX, grid.X)
	top, bottom := inside(t.PadY, t.ScaleY*float32(d.img.height), stepY, grid.Y)
	d.cropped = image.Rect(left, top, right, bottom)
	m := postprocess.DenseMap{Width: right - left, Height: bottom - top, StepX: t.ScaleX * stepX, StepY: t.ScaleY * stepY}
	if m.Width == 0 || m.Height == 0 {
		d.cropped = image.Rectangle{}
		return postprocess.DenseMap{}
	}
	m.X, m.Y = d.onGrid(grid, left, top)
	return m
}

// inside are the cells of an axis, of so many, that have their centres between a place of the network's input and so many pixels of it
// further; step is how many cells there are to a pixel of the input.
func inside(from, length, step float32, cells int) (first, end int) {
	bound := func(v float32) int {
		return int(min(max(math.Ceil(float64(v*step-0.5)), 0), float64(cells)))
	}
	first = bound(from)
	return first, max(bound(from+length), first)
}

// within moves the cells of a part of a grid to its beginning, row after row.
func within(cells []uint8, grid image.Point, part image.Rectangle) []uint8 {
	width := part.Dx()
	if width == grid.X {
		return cells[part.Min.Y*width : part.Max.Y*width]
	}
	for row := range part.Dy() {
		at := (part.Min.Y+row)*grid.X + part.Min.X
		copy(cells[row*width:(row+1)*width], cells[at:at+width])
	}
	return cells[:width*part.Dy()]
}
