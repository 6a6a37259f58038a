package scan

/*
#cgo noescape ei_highest_plane
#cgo nocallback ei_highest_plane
#cgo noescape ei_narrow_int32
#cgo nocallback ei_narrow_int32
#cgo noescape ei_narrow_int64
#cgo nocallback ei_narrow_int64
#cgo noescape ei_narrow_uint8
#cgo nocallback ei_narrow_uint8
#include "classes.h"
*/
import "C"

import "unsafe"

// ArgmaxPlanes writes to each cell of dst the plane with the highest score: argmax over 1 to 255 contiguous planes of len(dst) scores. Of
// equal scores the first counts. A cell whose first score is NaN becomes postprocess.NoClass; their number is returned.
func ArgmaxPlanes(dst []uint8, scores []float32, planes int) (none int) {
	if len(dst) == 0 || planes < 1 || planes > 255 {
		return 0
	}
	_ = scores[planes*len(dst)-1]
	return int(C.ei_highest_plane((*C.float)(unsafe.Pointer(unsafe.SliceData(scores))), C.int32_t(planes), C.int64_t(len(dst)),
		(*C.uint8_t)(unsafe.SliceData(dst))))
}

// ClassNumbers writes to dst class numbers below limit and 255. Others become postprocess.NoClass; their number is returned.
func ClassNumbers[T uint8 | int32 | int64](dst []uint8, numbers []T, limit int) (none int) {
	if len(dst) == 0 {
		return 0
	}
	_ = numbers[len(dst)-1]
	limit = min(limit, 255)
	from, to, count := unsafe.Pointer(unsafe.SliceData(numbers)), (*C.uint8_t)(unsafe.SliceData(dst)), C.int64_t(len(dst))
	switch any(numbers).(type) {
	case []int32:
		return int(C.ei_narrow_int32((*C.int32_t)(from), count, C.int32_t(limit), to))
	case []int64:
		return int(C.ei_narrow_int64((*C.int64_t)(from), count, C.int64_t(limit), to))
	default:
		return int(C.ei_narrow_uint8((*C.uint8_t)(from), count, C.int32_t(limit), to))
	}
}
