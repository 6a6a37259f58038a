package scan

/*
#cgo noescape ei_queries
#cgo nocallback ei_queries
#include "query.h"
*/
import "C"

import "unsafe"

// Query is a row of logits with a class above the minimum score. It has the memory layout of ei_query.
type Query struct {
	Row      int32
	Class    int32   // the likeliest class, the first of several
	MaxLogit float32 // of all logits, that of no object included
	Sum      float32 // of the exponentials of all logits minus the highest; NaN if a logit is, or if the highest is infinite
}

// FilterQueries writes to list, which has room for all rows, the rows in which the logit of a class exceeds that of no object by odds, or
// is NaN, and returns their number. A row has the logits of the classes and that of no object.
func FilterQueries(list []Query, logits []float32, classes int, odds float32) int {
	rows := len(logits) / (classes + 1)
	if rows == 0 {
		return 0
	}
	_ = list[rows-1]
	return int(C.ei_queries((*C.float)(unsafe.Pointer(unsafe.SliceData(logits))), C.int64_t(rows), C.int32_t(classes), C.float(odds),
		(*C.ei_query)(unsafe.Pointer(unsafe.SliceData(list)))))
}
