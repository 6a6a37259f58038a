package postprocess

import (
	"image"
	"slices"
)

// NoClass marks cells of a segmentation map without a class of the model.
const NoClass = 255

// DenseMap is the per-pixel output of a network: a segmentation map or a depth map. It is a grid, coarser or finer than the image, whose
// cells have their centres within the image; letterbox padding is not part of it.
type DenseMap struct {
	// Width and Height are the grid's columns and rows.
	Width, Height int
	// Classes holds the class numbers of the cells, row by row, NoClass for none; nil for a depth map.
	Classes []uint8
	// Depths holds the depths of the cells in the network's unit, row by row, possibly NaN or infinite; nil for a segmentation map.
	Depths []float32
	// The centre of pixel x, y is at column X + x*StepX and row Y + y*StepY of the grid.
	X, Y, StepX, StepY float32
}

// Translate moves the map by a number of pixels.
func (m *DenseMap) Translate(by image.Point) {
	m.X, m.Y = m.X-float32(by.X)*m.StepX, m.Y-float32(by.Y)*m.StepY
}

// Clone returns a map that shares no memory with m; nil for nil.
func (m *DenseMap) Clone() *DenseMap {
	if m == nil {
		return nil
	}
	c := *m
	c.Classes, c.Depths = slices.Clone(m.Classes), slices.Clone(m.Depths)
	return &c
}

// CellAt returns column and row of the cell that contains a pixel, or of the nearest one.
func (m *DenseMap) CellAt(x, y int) (column, row int) {
	return nearest(m.X+float32(x)*m.StepX, m.Width), nearest(m.Y+float32(y)*m.StepY, m.Height)
}

// Contains reports whether a pixel is on the grid, or less than a cell beyond it if the image does not end with a cell. The network has not
// seen pixels further away.
func (m *DenseMap) Contains(x, y int) bool {
	column, row := m.X+float32(x)*m.StepX, m.Y+float32(y)*m.StepY
	return column > -1.5 && row > -1.5 && column < float32(m.Width)+.5 && row < float32(m.Height)+.5
}

// DepthAt returns the depth at a position in pixels, where the first pixel's centre is 0, 0. It interpolates bilinearly between cell
// centres and extends the border.
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

// Centre returns the centre of a cell in pixels from the upper left corner of the image.
func (m *DenseMap) Centre(column, row int) (x, y float32) {
	return (float32(column)-m.X)/m.StepX + 0.5, (float32(row)-m.Y)/m.StepY + 0.5
}

// nearest returns the index of the cell that contains a position.
func nearest(place float32, cells int) int {
	return int(min(max(place+0.5, 0), float32(cells-1)))
}
