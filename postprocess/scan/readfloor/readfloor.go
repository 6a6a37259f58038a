// Package readfloor is the baseline of the decoder's benchmark: the minimum of any decoder, reading every score once.
package readfloor

/*
#cgo CFLAGS: -O3
#cgo noescape ei_read_floor
#cgo nocallback ei_read_floor
#include "readfloor.h"
*/
import "C"

import "unsafe"

// Count returns how many values reach the threshold.
func Count(values []float32, threshold float32) int {
	return int(C.ei_read_floor((*C.float)(unsafe.Pointer(unsafe.SliceData(values))), C.int64_t(len(values)), C.float(threshold)))
}
