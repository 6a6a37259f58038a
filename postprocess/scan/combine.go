package scan

/*
#cgo noescape ei_combine
#cgo nocallback ei_combine
#include "combine.h"
*/
import "C"

import (
	"image"
	"unsafe"
)

// WeightedSum writes to dst the weighted sum of planes, for a part of them, row after row. The planes are contiguous, of size.X by size.Y
// numbers, one for each weight.
func WeightedSum(dst, planes, weights []float32, size image.Point, part image.Rectangle) {
	if part.Empty() || len(weights) == 0 {
		return
	}
	plane := size.X * size.Y
	_ = planes[len(weights)*plane-1]
	_ = dst[part.Dx()*part.Dy()-1]
	from := planes[part.Min.Y*size.X+part.Min.X:]
	C.ei_combine(
		(*C.float)(unsafe.Pointer(unsafe.SliceData(from))), C.int64_t(plane), C.int64_t(size.X),
		(*C.float)(unsafe.Pointer(unsafe.SliceData(weights))), C.int32_t(len(weights)), C.int32_t(part.Dx()), C.int32_t(part.Dy()),
		(*C.float)(unsafe.Pointer(unsafe.SliceData(dst))))
}
