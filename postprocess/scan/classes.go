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

// ArgmaxPlanes writes to dst, of as many cells, the number of the plane whose score is the highest: argmax over planes of len(dst) scores
// that lie one after the other, 1 to 255 of them. Of equal scores the first counts. A cell whose first score is NaN becomes
// postprocess.NoClass; it says how many do.
func ArgmaxPlanes(dst []uint8, scores []float32, planes int) (none int) {
	if len(dst) == 0 || planes < 1 || planes > 255 {
		return 0
	}
	_ = scores[planes*len(dst)-1]
	return int(C.ei_highest_plane((*C.float)(unsafe.Pointer(unsafe.SliceData(scores))), C.int32_t(planes), C.int64_t(len(dst)),
		(*C.uint8_t)(unsafe.SliceData(dst))))
}

// ClassNumbers writes to dst class numbers that are at most 254 and under limit. Others become postprocess.NoClass; it says how many do.
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
