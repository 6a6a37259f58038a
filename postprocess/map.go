package postprocess

import (
	"image"
	"slices"
)

// NoClass is the class of a place of which a network says nothing, or of which what it says is none of the labels.
const NoClass = 255

// DenseMap is what a network says of every place of an image: its class, or how far it is. It is a grid, coarser or finer than the image, of
// cells whose centres lie within it: what a network says of the bars of a letterbox is not in it.
type DenseMap struct {
	// Width and Height are the grid's columns and rows.
	Width, Height int
	// Classes are the cells' class numbers by the model's labels, NoClass for none, row after row; nil for a map of depths.
	Classes []uint8
	// Depths are the cells' in the network's own unit, row after row, and may be NaN or infinite; nil for a map of classes.
	Depths []float32
	// The centre of pixel x, y lies at column X + x*StepX and row Y + y*StepY of the grid.
	X, Y, StepX, StepY float32
}

// Translate shifts the map by so many pixels.
func (m *DenseMap) Translate(by image.Point) {
	m.X, m.Y = m.X-float32(by.X)*m.StepX, m.Y-float32(by.Y)*m.StepY
}

// Clone returns a map that shares no memory with m; nil of nil.
func (m *DenseMap) Clone() *DenseMap {
	if m == nil {
		return nil
	}
	c := *m
	c.Classes, c.Depths = slices.Clone(m.Classes), slices.Clone(m.Depths)
	return &c
}

// CellAt is the column and the row of the cell that a pixel lies in, or nearest to where it lies in none.
func (m *DenseMap) CellAt(x, y int) (column, row int) {
	return nearest(m.X+float32(x)*m.StepX, m.Width), nearest(m.Y+float32(y)*m.StepY, m.Height)
}

// Covers reports whether a pixel lies on the grid, or less than a cell beside it where the image does not end with a cell. Beyond that is
// what the network was not shown.
func (m *DenseMap) Contains(x, y int) bool {
	column, row := m.X+float32(x)*m.StepX, m.Y+float32(y)*m.StepY
	return column > -1.5 && row > -1.5 && column < float32(m.Width)+.5 && row < float32(m.Height)+.5
}

// Depth is that of a place in pixels, of whose centres the first one has 0, 0: bilinearly between the centres of cells, and that of the
// border beyond them.
func (m *DenseMap) DepthAt(x, y float32) float32 {
	column, right := between(m.X+x*m.StepX, m.Width)
	row, down := between(m.Y+y*m.StepY, m.Height)
	at := func(row int) float32 {
		a, b := m.Depths[row*m.Width+column], m.Depths[row*m.Width+min(column+1, m.Width-1)]
		return a + (b-a)*right
	}
	above := at(row)
	return above + (at(min(row+1, m.Height-1))-above)*down
}

// Centre is where a cell has its centre, in pixels from the upper left corner of the image.
func (m *DenseMap) Centre(column, row int) (x, y float32) {
	return (float32(column)-m.X)/m.StepX + 0.5, (float32(row)-m.Y)/m.StepY + 0.5
}

// nearest is the cell, of so many, that a place belongs to.
func nearest(place float32, cells int) int {
	return int(min(max(place+0.5, 0), float32(cells-1)))
}
