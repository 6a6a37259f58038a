package scan

/*
#cgo noescape ei_extent
#cgo nocallback ei_extent
#include "extent.h"
*/
import "C"

import (
	"image"
	"unsafe"
)

// PositiveBounds returns the bounds of the numbers above 0 in a grid, row after row; empty for none. columns is scratch memory of a number
// for each column.
func PositiveBounds(grid []float32, size image.Point, columns []int32) image.Rectangle {
	if size.X < 1 || size.Y < 1 {
		return image.Rectangle{}
	}
	_, _ = grid[size.X*size.Y-1], columns[size.X-1]
	var bounds [4]int32
	C.ei_extent((*C.float)(unsafe.Pointer(unsafe.SliceData(grid))), C.int32_t(size.X), C.int32_t(size.Y),
		(*C.int32_t)(unsafe.Pointer(unsafe.SliceData(columns))), (*C.int32_t)(unsafe.Pointer(&bounds)))
	return image.Rect(int(bounds[0]), int(bounds[1]), int(bounds[2]), int(bounds[3]))
}
