package postprocess

/*
#cgo noescape ei_scan_columns
#cgo nocallback ei_scan_columns
#cgo noescape ei_scan_rows
#cgo nocallback ei_scan_rows
#cgo noescape ei_half_to_float
#cgo nocallback ei_half_to_float
#include "scan.h"
*/
import "C"

import "unsafe"

// candidate is one box over the threshold, in pixels of the network's input. It has the memory layout of ei_candidate.
type candidate struct {
	Box
	score float32
	class int32
}

// scanner finds the boxes over the threshold in a dense map, a list of bounded length at a time.
type scanner struct {
	query      C.ei_scan_query
	thresholds []float32 // one a class
	slots      []int32   // scratch of the column scan
	state      C.ei_scan_state
}

// open sizes the scanner for a model; setThreshold follows when the thresholds are known.
func (s *scanner) open(classes int, multiLabel bool) {
	s.thresholds = make([]float32, classes)
	s.query = C.ei_scan_query{classes: C.int32_t(classes)}
	if multiLabel {
		s.query.multi_label = 1
	}
}

// setThreshold sets the smallest of the thresholds.
func (s *scanner) setThreshold(lowest float32) { s.query.threshold = C.float(lowest) }

// begin starts a scan of a map of that many boxes.
func (s *scanner) begin(boxes int64) {
	s.query.boxes = C.int64_t(boxes)
	s.state = C.ei_scan_state{}
	if s.query.multi_label == 0 && int64(len(s.slots)) < boxes {
		s.slots = make([]int32, boxes)
	}
}

// next appends candidates to list up to its capacity and reports whether there may be more. The caller has checked that the map is as
// long as its layout says.
func (s *scanner) next(layout Layout, data []float32, list []candidate) (filled []candidate, more bool) {
	room := list[:cap(list)]
	s.state.count = C.int64_t(len(list))
	values := (*C.float)(unsafe.Pointer(unsafe.SliceData(data)))
	thresholds := (*C.float)(unsafe.Pointer(unsafe.SliceData(s.thresholds)))
	out := (*C.ei_candidate)(unsafe.Pointer(unsafe.SliceData(room)))
	var full C.int32_t
	if layout == LayoutYOLOv8 {
		slots := (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(s.slots)))
		full = C.ei_scan_columns(values, &s.query, thresholds, slots, out, C.int64_t(len(room)), &s.state)
	} else {
		full = C.ei_scan_rows(values, &s.query, thresholds, out, C.int64_t(len(room)), &s.state)
	}
	return room[:s.state.count], full != 0
}

// invalid is how many numbers or boxes the scan has skipped since begin.
func (s *scanner) invalid() int { return int(s.state.invalid) }

// widen converts IEEE 754 binary16 numbers; to must be as long as from.
func widen(to []float32, from []uint16) {
	C.ei_half_to_float((*C.uint16_t)(unsafe.Pointer(unsafe.SliceData(from))), (*C.float)(unsafe.Pointer(unsafe.SliceData(to))), C.int64_t(len(from)))
}
