package sink

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// Cascade shows second networks the objects of each frame, and tells the tracker and the sinks behind it what is known of them. A video
// waits for the looks, a camera does not.
type Cascade struct {
	Attendant *cascade.Secondary // whose Labels are those of the first network: objects of cameras with other labels are not shown

	frame    cascade.Frame
	follower *pipeline.Tracker // of the frame
	appear   func(track uint64, vector []float32)
}

// Frame implements pipeline.Sink.
func (c *Cascade) Frame(in *pipeline.Result) {
	if in.Tracker == nil || !slices.Equal(in.Labels, c.Attendant.Labels) {
		return
	}
	if c.follower = in.Tracker; c.appear == nil {
		c.appear = func(track uint64, vector []float32) { c.follower.UpdateEmbedding(track, vector) } // one for all frames
	}
	c.frame = cascade.Frame{Camera: in.Camera, Time: in.Time, Tracks: in.Tracks, Wait: in.Lossless, OnEmbedding: c.appear}
	if in.Frame != nil {
		c.frame.Image = in.Frame.Image()
	}
	for _, track := range c.Attendant.Process(&c.frame) {
		in.Tracker.MarkChanged(track)
	}
	in.Attributes = c.Attendant
}
