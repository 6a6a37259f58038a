package decode

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// masks gives every detection its mask: the part of the grid that its box needs.
func (d *Decoder) masks(found []postprocess.Detection) {
	shape := d.shapes[1]
	size, planes := image.Pt(int(shape[3]), int(shape[2])), d.parts[1].data
	memory := d.img.details
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
		scan.WeightedSum(m.Logits, planes, weights, size, image.Rect(column, row, column+m.Width, row+m.Height))
		m.X, m.Y = d.onGrid(size, column, row)
	}
}

// grid is the mask of a box without its numbers; X and Y are the part's first point on the prototypes.
func (d *Decoder) grid(box *postprocess.Box, size image.Point) postprocess.Mask {
	m := postprocess.Mask{Bounds: image.Rect(up(box.X1), up(box.Y1), up(box.X2), up(box.Y2))}
	m.StepX, m.StepY = d.steps(size)
	x, y := d.onGrid(size, 0, 0)
	left, right := span(x, m.StepX, m.Bounds.Min.X, m.Bounds.Max.X, size.X)
	top, bottom := span(y, m.StepY, m.Bounds.Min.Y, m.Bounds.Max.Y, size.Y)
	m.X, m.Y, m.Width, m.Height = float32(left), float32(top), right-left, bottom-top
	return m
}

// onGrid is where the image's first pixel has its centre, counted from a point of the prototypes.
func (d *Decoder) onGrid(size image.Point, column, row int) (x, y float32) {
	t := &d.img.transform
	x = (t.ScaleX/2+t.PadX)*float32(size.X)/float32(d.fit.Width) - 0.5 - float32(column)
	y = (t.ScaleY/2+t.PadY)*float32(size.Y)/float32(d.fit.Height) - 0.5 - float32(row)
	return x, y
}

// steps are how far apart on the grid two pixels lie.
func (d *Decoder) steps(size image.Point) (x, y float32) {
	t := &d.img.transform
	return t.ScaleX * float32(size.X) / float32(d.fit.Width), t.ScaleY * float32(size.Y) / float32(d.fit.Height)
}

// span are the points, of so many, between which the pixels from one to before another lie: the first one and the one after the last.
func span(start, step float32, from, to, points int) (first, end int) {
	last := float32(points - 1)
	first = int(min(max(start+float32(from)*step, 0), last))
	end = int(min(max(start+float32(to-1)*step, 0), last)) + 2
	return first, min(end, points)
}

func up(v float32) int { return int(math.Ceil(float64(v))) }

// queryMasks gives every detection the mask that the network gave for its query: the part of the grid that holds all of the object, and the
// points around it, so that between them it ends where it does on the whole grid.
func (d *Decoder) queryMasks(found []postprocess.Detection) {
	shape, from := d.shapes[2], d.extra()
	size := image.Pt(int(shape[3]), int(shape[2]))
	memory := d.img.details
	masks, columns := room(&memory.masks, len(found)), room(&memory.columns, size.X)
	numbers := 0
	for i := range found {
		object := scan.PositiveBounds(from.of(d.origins[i], d.now.Extra), size, columns)
		masks[i] = d.around(object, size)
		found[i].Detail.Mask = &masks[i]
		numbers += masks[i].Width * masks[i].Height
	}
	logits := room(&memory.logits, numbers)
	for i := range masks {
		m, grid := &masks[i], from.of(d.origins[i], d.now.Extra)
		count := m.Width * m.Height
		m.Logits, logits = logits[:count:count], logits[count:]
		column, row := int(m.X), int(m.Y) // where around left the part's first point
		for y := range m.Height {
			copy(m.Logits[y*m.Width:(y+1)*m.Width], grid[(row+y)*size.X+column:])
		}
		m.X, m.Y = d.onGrid(size, column, row)
	}
}

// around is the mask of an object that lies in that part of a grid, without its numbers; X and Y are its first point on the grid. One of no
// point has no pixel.
func (d *Decoder) around(object image.Rectangle, size image.Point) postprocess.Mask {
	m := postprocess.Mask{Width: 1, Height: 1}
	m.StepX, m.StepY = d.steps(size)
	if object.Empty() {
		return m
	}
	part := object.Inset(-1).Intersect(image.Rectangle{Max: size})
	m.X, m.Y, m.Width, m.Height = float32(part.Min.X), float32(part.Min.Y), part.Dx(), part.Dy()
	x, y := d.onGrid(size, 0, 0)
	m.Bounds.Min.X, m.Bounds.Max.X = seen(x, m.StepX, part.Min.X, part.Max.X, size.X, d.img.width)
	m.Bounds.Min.Y, m.Bounds.Max.Y = seen(y, m.StepY, part.Min.Y, part.Max.Y, size.Y, d.img.height)
	return m
}

// seen are the pixels, of so many, that a part of the grid's points says something of: those between two of its points, and those beyond
// the grid's border where the part reaches it. It is the reverse of span.
func seen(start, step float32, from, to, points, pixels int) (first, end int) {
	end = pixels
	if from > 0 {
		first = int(min(max((float32(from)-start)/step, 0), float32(pixels)))
	}
	if to < points {
		end = up(min(max((float32(to-1)-start)/step+1, 0), float32(pixels)))
	}
	return first, max(first, end)
}
