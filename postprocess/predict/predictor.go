package predict

import (
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// Predictor turns images into detections. Submit and Wait of one slot are called by one goroutine at a time; different slots may be used by
// different goroutines. Tune and Close may be called from anywhere.
type Predictor interface {
	// Model returns the model and the head of its outputs, which never change while the predictor is open.
	Model() Model
	// Alloc returns memory for images that Submit reads without a copy, valid until Buffer.Free or Close.
	Alloc(size int) (*engine.Buffer, error)
	// Slots returns how many requests can be in flight at once; slots are numbered from 0.
	Slots() int
	// Submit starts work on 1 to Model().MaxBatch images and does not wait. Their memory must stay unchanged until Wait of the slot
	// returns. An unreadable image does not affect the others: its Result has the error.
	Submit(slot int, images []engine.Image) error
	// Wait blocks until the slot's request is done. The result belongs to the predictor and is valid until the next Submit of this slot.
	Wait(slot int) (*BatchResult, error)
	// Tune changes how outputs are decoded, from the next Submit of each slot on. An error changes nothing.
	Tune(Decoding) error
	// Close waits for the work in flight and frees everything. It is idempotent.
	Close() error
}

// Networks returns the networks of which a predictor is made, in their order. Predictors that are made of others have an Unwrap method.
func Networks(p Predictor) []*Network {
	if n, single := p.(*Network); single {
		return []*Network{n}
	}
	var all []*Network
	if made, ok := p.(interface{ Unwrap() []Predictor }); ok {
		for _, member := range made.Unwrap() {
			all = append(all, Networks(member)...)
		}
	}
	return all
}

// Model is a loaded model with the head of its outputs.
type Model struct {
	engine.Model
	// Recognised is the head of the outputs, and why.
	Recognised head.Recognition
}

// BatchResult is the result of a request, with a Result for each submitted image in the same order. It and everything in it belong to the
// predictor and are valid until the next Submit of the same slot.
type BatchResult struct {
	Results []Result
	// Timing is the timing of the request by stage; zero when none of its images was readable.
	Timing engine.Timing
	// Decoding is the duration of decoding.
	Decoding time.Duration
	// Contradiction is set when the outputs do not match the recognised head (NaN, scores outside 0..1, misplaced boxes), and remains set
	// until the model is reopened. It is nil otherwise.
	Contradiction *Contradiction
}

// Result is the result for one image.
type Result struct {
	// Detections are in pixels of the image, best first.
	Detections []postprocess.Detection
	// Map is the segmentation or depth map of networks that have one, without detections; else nil.
	Map *postprocess.DenseMap
	// Stats counts what decoding did with the image.
	Stats head.Stats
	// Err is why there are no detections: the image was not readable, or its outputs could not be decoded. Other images of the request are
	// not affected.
	Err error
}

// Clone returns a copy that shares no memory with r.
func (r *Result) Clone() Result {
	c := *r
	c.Map = r.Map.Clone()
	c.Detections = slices.Clone(r.Detections)
	for i := range c.Detections {
		c.Detections[i] = c.Detections[i].Clone()
	}
	return c
}
