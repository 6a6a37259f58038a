package predict

import (
	"fmt"
	"sync"

	"github.com/edge-infer/edge-infer/postprocess/head"
)

// Contradiction is the error for outputs that cannot belong to the recognised head: everything decoded from them is noise, and another
// layout is needed.
type Contradiction struct {
	Model  string
	Layout head.Layout
	Images int    // in a row
	Reason string // what their outputs are
}

// Error returns the text in one line.
func (c *Contradiction) Error() string {
	return fmt.Sprintf("model %s is not %s: %d images in a row had %s (select another --layout; edge-infer inspect shows the outputs)",
		c.Model, c.Layout, c.Images, c.Reason)
}

// ContradictionImages is how many images in a row must contradict the head. Only images on which the network detects something count: an
// empty scene is no evidence.
const ContradictionImages = 30

// InvalidOutput is the error of a single image whose outputs contradict the head. Where the head was right for an earlier image, the layout
// is known to be right: the network, its server or the image is at fault, and only this image is lost.
type InvalidOutput struct{ Reason string }

// Error returns the text in one line.
func (e *InvalidOutput) Error() string { return "the network's output is invalid: it has " + e.Reason }

// The errors of single images, made once so that a long series of them does not allocate.
var (
	invalidScores = &InvalidOutput{noScores}
	invalidBoxes  = &InvalidOutput{noBoxes}
)

// evidence counts images whose outputs contradict the head, until one is right. Any goroutine may add to it.
type evidence struct {
	mu            sync.Mutex
	strict        bool // see Options.PerImageErrors
	right         bool // an image had detections and nothing that contradicts the head
	images        int  // for which all scores were checked
	scores        int  // in a row with scores that are none
	boxes         int  // in a row with boxes where there can be none
	contradiction *Contradiction
	model         string
	layout        head.Layout
}

// checksAllScores reports whether to check every score of the next image. It takes long and is done for the first images only; afterwards
// decoding still checks those above the minimum score.
func (e *evidence) checksAllScores() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.images++
	return e.images <= ContradictionImages
}

// add counts an image with so many values that cannot be scores. The error is that of an image without a valid detection, after the first
// right image. Before it, enough images with anything invalid in a row are a Contradiction; if the evidence is strict each of them has an
// error, too.
func (e *evidence) add(s *head.Stats, badScores int) (contradiction *Contradiction, invalid error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.contradiction == nil && badScores == 0 && keptBoxes(s) > 0 && !misplaced(s) {
		e.right = true
	}
	switch {
	case !e.right && !e.strict:
	case badScores > 0 && (keptBoxes(s) == 0 || !e.right):
		invalid = invalidScores
	case misplaced(s):
		invalid = invalidBoxes
	}
	if e.right {
		return nil, invalid
	}
	switch {
	case badScores > 0:
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
	return e.contradiction, invalid
}

// Outputs that no head has.
const (
	noScores = "scores that are not from 0 to 1"
	noBoxes  = "boxes outside the image or of no size"
)

// FindContradiction returns what in an image's outputs contradicts its head, empty for nothing. A single image proves nothing.
func FindContradiction(s *head.Stats) string {
	switch {
	case s.BadScores > 0:
		return noScores
	case misplaced(s):
		return noBoxes
	}
	return ""
}

// keptBoxes returns the number of boxes of an image after suppression, wherever they are.
func keptBoxes(s *head.Stats) int { return s.Candidates - s.Truncated - s.Suppressed }

// misplaced reports whether no box of an image is in a possible place.
func misplaced(s *head.Stats) bool {
	return keptBoxes(s) > 0 && s.OutsideInput == keptBoxes(s) || s.Candidates == 0 && s.Invalid > s.BadScores
}
