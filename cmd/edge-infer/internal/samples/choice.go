package samples

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Reasons to keep a frame, which are in the names of its files.
const (
	unsure = "unsure" // a reported object has a score just over the threshold
	lost   = "lost"   // an object that was followed for a while is not found any more, inside the image
)

const (
	// unsureShare is the part of the scores over the threshold that counts as unsure: from 0.25 to 0.36 with the usual threshold. Labels of
	// such frames change a model most, as active learning by least confidence has it.
	unsureShare = 0.15
	// lostHits is how often an object must have been found for its loss to be one of the network.
	lostHits = 10
	// edgeShare is the part of the image's sides that counts as its edge, where objects leave.
	edgeShare = 0.05
)

// choice follows the objects of a camera. One goroutine uses it.
type choice struct {
	followed []uint64 // tracks that were found in the frame before, often enough
	next     []uint64 // memory of followed
}

// isUnsure reports whether an object has a score just over the camera's threshold.
func isUnsure(in *pipeline.Result, threshold float32) bool {
	limit := threshold + unsureShare*(1-threshold)
	for i := range in.Detections {
		if score := in.Detections[i].Score; score >= threshold && score < limit {
			return true
		}
	}
	return false
}

// lost reports whether an object that was found in the frame before is not found in this one, though it is not at the edge of the image. It
// is called with every frame and allocates nothing in the long run.
func (c *choice) lost(in *pipeline.Result) (gone bool) {
	c.next = c.next[:0]
	for i := range in.Tracks {
		t := &in.Tracks[i]
		switch {
		case t.Matched() && t.Hits >= lostHits:
			c.next = append(c.next, t.ID)
		case !t.Matched() && inside(&t.Box, in) && slices.Contains(c.followed, t.ID):
			gone = true
		}
	}
	c.followed, c.next = c.next, c.followed
	return gone
}

// inside reports whether a box does not touch the edge of the image.
func inside(b *postprocess.Box, in *pipeline.Result) bool {
	x, y := edgeShare*float32(in.Width), edgeShare*float32(in.Height)
	return b.X1 > x && b.Y1 > y && b.X2 < float32(in.Width)-x && b.Y2 < float32(in.Height)-y
}
