package postprocess

/*
#cgo noescape ei_scan_columns
#cgo nocallback ei_scan_columns
#cgo noescape ei_scan_rows
#cgo nocallback ei_scan_rows
#cgo noescape ei_half_to_float
#cgo nocallback ei_half_to_float
#cgo noescape ei_impossible
#cgo nocallback ei_impossible
#include "scan.h"
*/
import "C"

import (
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
)

// candidate is one box over the threshold, in pixels of the network's input. It has the memory layout of ei_candidate.
type candidate struct {
	Box
	score float32
	class int32
}

// scanner finds the boxes over the threshold in a dense map, a list of bounded length at a time.
type scanner struct {
	query      C.ei_scan_query
	columns    bool      // the scores lie class after class
	thresholds []float32 // one a class
	slots      []int32   // scratch of the column scan
	state      C.ei_scan_state
}

// open sizes the scanner for a model; setThreshold follows when the thresholds are known.
func (s *scanner) open(classes int, multiLabel bool) {
	s.thresholds = make([]float32, classes)
	s.query = C.ei_scan_query{multi_label: C.int32_t(flag(multiLabel))}
}

// setThreshold sets the smallest of the thresholds.
func (s *scanner) setThreshold(lowest float32) { s.query.threshold = C.float(lowest) }

// begin starts a scan. A map's scores lie class after class without a gap, or box after box.
func (s *scanner) begin(m *engine.BoxMap) {
	q := &s.query
	q.boxes, q.classes = C.int64_t(m.Count), C.int32_t(m.Classes)
	q.box_step, q.box_next = C.int64_t(m.Boxes.Step), C.int64_t(m.Boxes.Next)
	q.score_step, q.score_next = C.int64_t(m.Scores.Step), C.int64_t(m.Scores.Next)
	q.scale_x, q.scale_y = C.float(m.ScaleX), C.float(m.ScaleY)
	q.objectness, q.corners = C.int32_t(flag(m.Objectness)), C.int32_t(flag(m.Corners))
	s.columns = m.Scores.Next == int64(m.Count) && m.Scores.Step == 1
	s.state = C.ei_scan_state{}
	if s.columns && q.multi_label == 0 && len(s.slots) < m.Count {
		s.slots = make([]int32, m.Count)
	}
}

// next appends candidates to list up to its capacity and reports whether there may be more. boxes and scores begin where the map's offsets
// say; the caller has checked that they hold the whole map.
func (s *scanner) next(boxes, scores []float32, list []candidate) (filled []candidate, more bool) {
	room := list[:cap(list)]
	s.state.count = C.int64_t(len(list))
	coordinates := (*C.float)(unsafe.Pointer(unsafe.SliceData(boxes)))
	values := (*C.float)(unsafe.Pointer(unsafe.SliceData(scores)))
	thresholds := (*C.float)(unsafe.Pointer(unsafe.SliceData(s.thresholds)))
	out := (*C.ei_candidate)(unsafe.Pointer(unsafe.SliceData(room)))
	var full C.int32_t
	if s.columns {
		slots := (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(s.slots)))
		full = C.ei_scan_columns(coordinates, values, &s.query, thresholds, slots, out, C.int64_t(len(room)), &s.state)
	} else {
		full = C.ei_scan_rows(coordinates, values, &s.query, thresholds, out, C.int64_t(len(room)), &s.state)
	}
	return room[:s.state.count], full != 0
}

// impossible counts the scores of the map that begin was given which are none.
func (s *scanner) impossible(scores []float32) int {
	return int(C.ei_impossible((*C.float)(unsafe.Pointer(unsafe.SliceData(scores))), &s.query))
}

func flag(set bool) int32 {
	if set {
		return 1
	}
	return 0
}

// widen converts IEEE 754 binary16 numbers; to must be as long as from.
func widen(to []float32, from []uint16) {
	source, target := (*C.uint16_t)(unsafe.Pointer(unsafe.SliceData(from))), (*C.float)(unsafe.Pointer(unsafe.SliceData(to)))
	C.ei_half_to_float(source, target, C.int64_t(len(from)))
}
