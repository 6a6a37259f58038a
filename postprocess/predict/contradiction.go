package predict

import (
	"fmt"
	"sync"

	"github.com/edge-infer/edge-infer/postprocess/head"
)

// Contradiction says that what a network gives cannot come from the head that its outputs were recognised as: everything decoded from it is
// noise, and another layout is called for.
type Contradiction struct {
	Model  string
	Layout head.Layout
	Images int    // in a row that said so
	Reason string // they gave
}

// Error says it in one line.
func (c *Contradiction) Error() string {
	return fmt.Sprintf("model %s is not %s: %d images in a row gave %s (name another --layout; edge-infer inspect shows the outputs)",
		c.Model, c.Layout, c.Images, c.Reason)
}

// ContradictionImages is how many images in a row must contradict the head. Only images on which the network sees something count, for it or
// against it: an empty scene is no evidence, however long it stays empty.
const ContradictionImages = 30

// evidence gathers what images say about the head. Any goroutine may add to it.
type evidence struct {
	mu            sync.Mutex
	images        int // images whose scores were all looked at
	scores        int // in a row with scores that are none
	boxes         int // in a row with boxes where there can be none
	contradiction *Contradiction
	model         string
	layout        head.Layout
}

// curious reports whether every score of the next image should be looked at. It takes long, so only the first images are; after them
// those over the threshold still are.
func (e *evidence) checksAllScores() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.images++
	return e.images <= ContradictionImages
}

// add takes one image into account; impossible are the scores that are none.
func (e *evidence) add(s *head.Stats, impossible int) *Contradiction {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case impossible > 0:
		e.scores++
	case s.Candidates > 0:
		e.scores = 0
	}
	switch {
	case misplaced(s):
		e.boxes++
	case keptBoxes(s) > 0:
		e.boxes = 0
	}
	if e.contradiction == nil && e.scores >= ContradictionImages {
		e.contradiction = &Contradiction{e.model, e.layout, e.scores, noScores}
	}
	if e.contradiction == nil && e.boxes >= ContradictionImages {
		e.contradiction = &Contradiction{e.model, e.layout, e.boxes, noBoxes}
	}
	return e.contradiction
}

// What numbers are that a head cannot give.
const (
	noScores = "scores that are not from 0 to 1"
	noBoxes  = "boxes outside the image or of no size"
)

// FindContradiction says what of an image's numbers its head cannot give; empty where nothing contradicts it. One image proves nothing.
func FindContradiction(s *head.Stats) string {
	switch {
	case s.BadScores > 0:
		return noScores
	case misplaced(s):
		return noBoxes
	}
	return ""
}

// keptBoxes are the boxes of an image, wherever they are.
func keptBoxes(s *head.Stats) int { return s.Candidates - s.Truncated - s.Suppressed }

// misplaced reports whether no box of an image lies where one can.
func misplaced(s *head.Stats) bool {
	return keptBoxes(s) > 0 && s.OutsideInput == keptBoxes(s) || s.Candidates == 0 && s.Invalid > s.BadScores
}
