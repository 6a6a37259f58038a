package head

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// maxMapStride is the largest stride of a segmentation or depth map; maps with larger ones are heads of detectors.
const maxMapStride = 16

// isImageSized reports whether the last two dimensions are those of the input at a scale of segmentation and depth maps, or open. Sizes
// that a stride does not divide are rounded up or down.
func (n *network) isImageSized(shape []int64) bool {
	height, width := shape[len(shape)-2], shape[len(shape)-1]
	for stride := int64(1); stride <= maxMapStride; stride *= 2 {
		fits := func(size int64, side int) bool {
			return size < 0 || size == int64(side)/stride || size == (int64(side)+stride-1)/stride
		}
		if fits(height, n.height) && fits(width, n.width) {
			return true
		}
	}
	return false
}

// isWholeSized reports whether the last two dimensions are those of the input, or open.
func (n *network) isWholeSized(shape []int64) bool {
	height, width := shape[len(shape)-2], shape[len(shape)-1]
	return (height < 0 || height == int64(n.height)) && (width < 0 || width == int64(n.width))
}

// cellsOf returns the number of cells of the last two dimensions, -1 while one of them is open.
func cellsOf(shape []int64) int64 {
	height, width := shape[len(shape)-2], shape[len(shape)-1]
	if height < 0 || width < 0 {
		return -1
	}
	return height * width
}

// gridSize returns the size of the network's map: the last two dimensions.
func (in *input) gridSize() image.Point {
	shape := in.shapes[0]
	return image.Pt(int(shape[len(shape)-1]), int(shape[len(shape)-2]))
}

// cropMap returns the map of the cells whose centres lie in the image, without their values, and those cells.
func (in *input) cropMap(grid image.Point) (m postprocess.DenseMap, cropped image.Rectangle) {
	t := &in.transform
	stepX, stepY := float32(grid.X)/float32(in.match.width), float32(grid.Y)/float32(in.match.height)
	left, right := cellSpan(t.PadX, t.ScaleX*float32(in.width), stepX, grid.X)
	top, bottom := cellSpan(t.PadY, t.ScaleY*float32(in.height), stepY, grid.Y)
	if right == left || bottom == top {
		return postprocess.DenseMap{}, image.Rectangle{}
	}
	m = postprocess.DenseMap{Width: right - left, Height: bottom - top, StepX: t.ScaleX * stepX, StepY: t.ScaleY * stepY}
	m.X, m.Y = in.gridOffset(grid, left, top)
	return m, image.Rect(left, top, right, bottom)
}

// cellSpan returns the range of the cells on an axis whose centres lie in [from, from+length) pixels of the network's input; cells is their
// number on the axis, step the number of cells per pixel.
func cellSpan(from, length, step float32, cells int) (first, end int) {
	bound := func(v float32) int {
		return int(min(max(math.Ceil(float64(v*step-0.5)), 0), float64(cells)))
	}
	first = bound(from)
	return first, max(bound(from+length), first)
}
