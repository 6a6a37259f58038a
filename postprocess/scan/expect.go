package scan

/*
#cgo noescape ei_expect
#cgo nocallback ei_expect
#include "expect.h"
*/
import "C"

import "unsafe"

// DistanceBins is the number of logits of a distance.
const DistanceBins = 8

// DecodeDistances writes to dst the expected distances of DistanceBins logits each: the mean of 0 to 7 weighted by their softmax
// (distribution focal loss). A distance is NaN if a logit is, or if the highest is infinite.
func DecodeDistances(dst, logits []float32) {
	if len(dst) == 0 {
		return
	}
	_ = logits[DistanceBins*len(dst)-1]
	C.ei_expect((*C.float)(unsafe.Pointer(unsafe.SliceData(logits))), C.int32_t(len(dst)), (*C.float)(unsafe.Pointer(unsafe.SliceData(dst))))
}
