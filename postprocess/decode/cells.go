package decode

import (
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// yolox decodes rows of offsets and logarithms.
func (d *Decoder) yolox(dst []postprocess.Detection) ([]postprocess.Detection, error) {
	row := 5 + int64(d.now.Classes)
	if err := d.scanMap(); err != nil {
		return dst, err
	}
	cells, ok := d.now.Cells(false)
	if !ok {
		return dst, d.unfit()
	}
	inPixels := decodedInside(d.parts[0].data, int(row), &cells, d.fit.Width)
	d.place(func(c *scan.Candidate) {
		x, y, width, height := c.X1, c.Y1, c.X2, c.Y2
		if !inPixels {
			s, column, line := cells.Cell(int(c.Index))
			stride := float32(s.Stride)
			x, y = (x+float32(column))*stride, (y+float32(line))*stride
			width, height = exp(width)*stride, exp(height)*stride
		}
		c.Box = postprocess.Box{X1: x - width/2, Y1: y - height/2, X2: x + width/2, Y2: y + height/2}
	})
	return d.finish(dst), nil
}

// decodedInside tells boxes in input pixels from raw ones by the last line of the coarsest scale: in pixels its centres are spread over the
// width of the input, raw they are offsets of a cell or two.
func decodedInside(rows []float32, row int, g *head.Grid, width int) bool {
	columns := g.Scales[g.Count-1].Width
	sum := float32(0)
	for i := len(rows) - columns*row; i < len(rows); i += row {
		sum += rows[i]
	}
	return sum/float32(columns) > float32(width)/4
}

// nanodet decodes rows of distributions over distances.
func (d *Decoder) nanodet(dst []postprocess.Detection) ([]postprocess.Detection, error) {
	row := head.BoxLogits + int64(d.now.Classes)
	if err := d.scanMap(); err != nil {
		return dst, err
	}
	cells, ok := d.now.Cells(true)
	if !ok {
		return dst, d.unfit()
	}
	pico := d.layout == head.LayoutPicoDet
	corner := float32(0) // distances count from the cell's corner, with the three scales of the first NanoDet and in PicoDet from its middle
	if cells.Count < 4 || pico {
		corner = 0.5
	}
	rows, width, height := d.parts[0].data, float32(d.fit.Width), float32(d.fit.Height)
	d.place(func(c *scan.Candidate) {
		s, column, line := cells.Cell(int(c.Index))
		stride := float32(s.Stride)
		x, y := (float32(column)+corner)*stride, (float32(line)+corner)*stride
		var sides [head.BoxLogits / scan.DistanceBins]float32 // left, top, right and bottom, in cells
		scan.DecodeDistances(sides[:], rows[int64(c.Index)*row+int64(d.now.Classes):])
		c.X1, c.Y1, c.X2, c.Y2 = x-stride*sides[0], y-stride*sides[1], x+stride*sides[2], y+stride*sides[3]
		if !pico { // which suppresses boxes as they are
			c.X1, c.Y1, c.X2, c.Y2 = max(c.X1, 0), max(c.Y1, 0), min(c.X2, width), min(c.Y2, height)
		}
	})
	return d.finish(dst), nil
}
