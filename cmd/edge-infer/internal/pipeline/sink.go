package pipeline

import (
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Result is one frame that the network has seen, as sinks get it. It belongs to the frame loop: a sink copies what it keeps.
type Result struct {
	Camera        string
	Seq           uint64
	Time          time.Time
	Captured      int64 // CLOCK_MONOTONIC nanoseconds
	Width, Height int   // of the source image in pixels
	Latency       time.Duration
	Timing        engine.Timing // of the request that the frame was in
	Detections    []postprocess.Detection
	// Map is the dense result of segmentation and depth networks, and MapStats its summary; nil for other networks. There are no detections
	// then.
	Map      *postprocess.DenseMap
	MapStats *zone.MapStats
	// Tracks are the followed objects as of this frame, lost ones with a predicted box; nil where nothing is tracked.
	Tracks []postprocess.Track
	// IDs are the track numbers of the detections, 0 for none; empty where nothing is tracked.
	IDs []uint64
	// Events are the events of zones, lines and objects; nil without a tracker.
	Events *zone.Result
	// Tracker is the camera's, for its counts; nil where nothing is tracked.
	Tracker *Tracker
	// Attributes are the results of secondary networks; nil without such networks.
	Attributes *Attributes
	// Frame holds the pixels. Images that leave the process are copied by package jpegimage alone, which takes Hidden into account.
	Frame  *capture.Frame
	Hidden *Hidden  // parts of Frame that must be pixelated; nil for none
	Labels []string // by class number
	// Stages take the times of what sinks do with it; they may be nil.
	Stages *stage.Times
	// Lossless means that the camera waits for the consumer: a sink may block instead of dropping.
	Lossless bool
}

// Sink takes every complete result, and when the images of a tracked camera stop one more without pixels and detections, with the events of
// the objects that ended. Frame is called by the frame goroutine alone, must return in microseconds, and must not change the result: the
// order of sinks has no meaning.
type Sink interface {
	Frame(*Result)
}
