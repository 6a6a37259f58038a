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

	invalidCorners = &InvalidOutput{noCentres}
	invalidHeat    = &InvalidOutput{noMaps}
)

// evidence counts images whose outputs contradict the head, until one is right. Any goroutine may add to it.
type evidence struct {
	mu            sync.Mutex
	strict        bool // see Options.PerImageErrors
	right         bool // an image had detections and nothing that contradicts the head
	images        int  // for which all scores were checked
	scores        int  // in a row with scores that are none
	boxes         int  // in a row with boxes where there can be none
	corners       int  // since the last image whose boxes cannot be corners: those whose boxes must be
	heat          int  // in a row with heat maps instead of scores
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
	if e.contradiction == nil && badScores == 0 && (isRight(s) || s.ScoreMaps > 0) {
		e.right = true
	}
	switch {
	case !e.right && !e.strict:
	case !e.right && likeCorners(s) && s.Overhanging > 0:
		invalid = invalidCorners
	case !e.right && s.HeatMaps > 0:
		invalid = invalidHeat
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
	case likeCorners(s):
		if s.Overhanging > 0 {
			e.corners++
		}
	case keptBoxes(s) > 0:
		e.boxes = 0
	}
	e.heat += s.HeatMaps
	for _, kind := range []struct {
		images int
		reason string
	}{{e.scores, noScores}, {e.boxes, noBoxes}, {e.corners, noCentres}, {e.heat, noMaps}} {
		if e.contradiction == nil && kind.images >= ContradictionImages {
			e.contradiction = &Contradiction{e.model, e.layout, kind.images, kind.reason}
		}
	}
	return e.contradiction, invalid
}

// Outputs that no head has.
const (
	noScores  = "scores that are not from 0 to 1"
	noBoxes   = "boxes outside the image or of no size"
	noCentres = "boxes of two corners instead of centre and sides"
	noMaps    = "heat maps instead of class scores"
)

// FindContradiction returns what in an image's outputs contradicts its head, empty for nothing. A single image proves nothing. open is set
// for an image that decides nothing either way.
func FindContradiction(s *head.Stats) (reason string, open bool) {
	switch {
	case s.BadScores > 0:
		return noScores, false
	case misplaced(s):
		return noBoxes, false
	case s.HeatMaps > 0:
		return noMaps, false
	case likeCorners(s) && s.Overhanging > 0:
		return noCentres, false
	}
	return "", likeCorners(s)
}

// keptBoxes returns the number of boxes of an image after suppression, wherever they are.
func keptBoxes(s *head.Stats) int { return s.Candidates - s.Truncated - s.Suppressed }

// isRight reports whether an image has boxes, and they are as its head has them.
func isRight(s *head.Stats) bool { return keptBoxes(s) > 0 && !misplaced(s) && !likeCorners(s) }

// likeCorners reports whether the centres and sides of all boxes of an image could be corners.
func likeCorners(s *head.Stats) bool { return keptBoxes(s) > 0 && s.LikeCorners == keptBoxes(s) }

// misplaced reports whether no box of an image is in a possible place, or as many are of no size as others.
func misplaced(s *head.Stats) bool {
	empty := s.Invalid - s.BadScores
	return keptBoxes(s) > 0 && s.OutsideInput == keptBoxes(s) || empty > 0 && empty >= s.Candidates
}
