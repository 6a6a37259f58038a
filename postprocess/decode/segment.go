package decode

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// masks gives every finding its mask: the part of the grid that its box needs.
func (d *Decoder) masks(found []postprocess.Finding) {
	shape := d.shapes[1]
	size, planes := image.Pt(int(shape[3]), int(shape[2])), d.parts[1].data
	memory := d.picture.details
	masks := room(&memory.masks, len(found))
	numbers := 0
	for i := range found {
		masks[i] = d.grid(&found[i].Box, size)
		found[i].Detail.Mask = &masks[i]
		numbers += masks[i].Width * masks[i].Height
	}
	logits := room(&memory.logits, numbers)
	weights, from := room(&memory.weights, d.now.Extra), d.extra()
	for i := range masks {
		m := &masks[i]
		for w := range weights {
			weights[w] = from.at(d.origins[i], w)
		}
		count := m.Width * m.Height
		m.Logits, logits = logits[:count:count], logits[count:]
		column, row := int(m.X), int(m.Y) // where grid left the part's first point
		scan.Combine(m.Logits, planes, weights, size, image.Rect(column, row, column+m.Width, row+m.Height))
		m.X, m.Y = d.onGrid(size, column, row)
	}
}

// grid is the mask of a box without its numbers; X and Y are the part's first point on the prototypes.
func (d *Decoder) grid(box *postprocess.Box, size image.Point) postprocess.Mask {
	t := &d.picture.transform
	m := postprocess.Mask{
		Bounds: image.Rect(up(box.X1), up(box.Y1), up(box.X2), up(box.Y2)),
		StepX:  t.ScaleX * float32(size.X) / float32(d.fit.Width), StepY: t.ScaleY * float32(size.Y) / float32(d.fit.Height),
	}
	x, y := d.onGrid(size, 0, 0)
	left, right := span(x, m.StepX, m.Bounds.Min.X, m.Bounds.Max.X, size.X)
	top, bottom := span(y, m.StepY, m.Bounds.Min.Y, m.Bounds.Max.Y, size.Y)
	m.X, m.Y, m.Width, m.Height = float32(left), float32(top), right-left, bottom-top
	return m
}

// onGrid is where the picture's first pixel has its centre, counted from a point of the prototypes.
func (d *Decoder) onGrid(size image.Point, column, row int) (x, y float32) {
	t := &d.picture.transform
	x = (t.ScaleX/2+t.PadX)*float32(size.X)/float32(d.fit.Width) - 0.5 - float32(column)
	y = (t.ScaleY/2+t.PadY)*float32(size.Y)/float32(d.fit.Height) - 0.5 - float32(row)
	return x, y
}

// span are the points, of so many, between which the pixels from one to before another lie: the first one and the one after the last.
func span(start, step float32, from, to, points int) (first, end int) {
	last := float32(points - 1)
	first = int(min(max(start+float32(from)*step, 0), last))
	end = int(min(max(start+float32(to-1)*step, 0), last)) + 2
	return first, min(end, points)
}

func up(v float32) int { return int(math.Ceil(float64(v))) }
