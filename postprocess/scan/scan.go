// Package scan finds the boxes of a network's output above a minimum score. It is the only part of decoding that reads every number, in C
// because Go has no vector instructions.
package scan

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
	"math"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Candidate is a box above the minimum score, in pixels of the network's input. It has the memory layout of ei_candidate.
type Candidate struct {
	postprocess.Box
	Score float32
	Class int32
	Index int32 // of the box in the map
}

// Valid scores lie between these. Quantized sigmoids end a little above 1.
const (
	MinScore = -engine.ScoreTolerance
	MaxScore = 1 + engine.ScoreTolerance
)

// MaxCoordinate is above every valid coordinate in pixels.
const MaxCoordinate = 1e6

// Format is the format of a box map.
type Format struct {
	// MultiLabel returns a box once for every class above its minimum score instead of once for its best class.
	MultiLabel bool
	// Logits are scores before a sigmoid. Minimum scores and the scores of candidates are after it.
	Logits bool
	// Raw returns the four numbers of a box as they are, unchecked, because they are no coordinates.
	Raw bool
}

// Scanner finds the boxes above their minimum scores in a dense map, into a list of bounded length at a time.
type Scanner struct {
	form       Format
	thresholds []float32

	query   C.ei_scan_query
	columns bool    // the scores lie class after class
	slots   []int32 // scratch of the column scan
	state   C.ei_scan_state
}

// Open sets the minimum scores by class, infinity for a class that is not wanted. It keeps the slice.
func (s *Scanner) Open(thresholds []float32, form Format) {
	s.form, s.thresholds = form, thresholds
	s.query = C.ei_scan_query{multi_label: C.int32_t(flag(form.MultiLabel)), logits: C.int32_t(flag(form.Logits))}
	lowest := float32(math.Inf(1))
	for i, threshold := range thresholds {
		if form.Logits {
			p := float64(threshold)
			thresholds[i] = float32(math.Log(p / max(1-p, 0)))
			if p > 1 {
				thresholds[i] = threshold
			}
		}
		lowest = min(lowest, thresholds[i])
	}
	s.query.threshold = C.float(lowest)
}

// Begin starts a scan. The scores of a map are contiguous class after class, or box after box.
func (s *Scanner) Begin(m *engine.BoxMap) {
	q := &s.query
	q.boxes, q.classes = C.int64_t(m.Count), C.int32_t(m.Classes)
	q.box_step, q.box_next = C.int64_t(m.Boxes.Step), C.int64_t(m.Boxes.Next)
	q.score_step, q.score_next = C.int64_t(m.Scores.Step), C.int64_t(m.Scores.Next)
	q.scale_x, q.scale_y = C.float(m.ScaleX), C.float(m.ScaleY)
	q.objectness, q.form = C.int32_t(flag(m.Objectness)), C.EI_CENTRE
	switch {
	case s.form.Raw:
		q.form = C.EI_RAW
	case m.Corners:
		q.form = C.EI_CORNERS
	}
	s.columns = m.Scores.Next == int64(m.Count) && m.Scores.Step == 1
	s.state = C.ei_scan_state{}
	if s.columns && q.multi_label == 0 && len(s.slots) < m.Count {
		s.slots = make([]int32, m.Count)
	}
}

// Boxes returns the number of boxes in the map of Begin.
func (s *Scanner) Boxes() int { return int(s.query.boxes) }

// Next appends candidates to list up to its capacity and reports whether there may be more. boxes and scores begin at the offsets of the
// map; the caller has checked that they hold the whole map. Without MultiLabel scores class after class need room for all boxes.
func (s *Scanner) Next(boxes, scores []float32, list []Candidate) (filled []Candidate, more bool) {
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
	filled = room[:s.state.count]
	if s.form.Logits {
		for i := len(list); i < len(filled); i++ {
			filled[i].Score = Sigmoid(filled[i].Score)
		}
	}
	return filled, full != 0
}

// Sigmoid returns the score of a logit.
func Sigmoid(logit float32) float32 { return float32(1 / (1 + math.Exp(-float64(logit)))) }

// Skipped returns how many invalid scores and invalid boxes were skipped since Begin.
func (s *Scanner) Skipped() (impossible, invalid int) {
	return int(s.state.impossible), int(s.state.invalid)
}

// CountBadScores counts all invalid scores in the map of Begin.
func (s *Scanner) CountBadScores(scores []float32) int {
	return int(C.ei_impossible((*C.float)(unsafe.Pointer(unsafe.SliceData(scores))), &s.query))
}

func flag(set bool) int32 {
	if set {
		return 1
	}
	return 0
}

// Widen converts IEEE 754 binary16 numbers; to must have the length of from.
func Widen(to []float32, from []uint16) {
	source, target := (*C.uint16_t)(unsafe.Pointer(unsafe.SliceData(from))), (*C.float)(unsafe.Pointer(unsafe.SliceData(to)))
	C.ei_half_to_float(source, target, C.int64_t(len(from)))
}
