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
	// Model says what runs and how its outputs are read. The answer never changes while the predictor is open.
	Model() Model
	// Alloc returns memory whose images Submit reads without a copy, valid until Buffer.Free or Close.
	Alloc(size int) (*engine.Buffer, error)
	// Slots is how many requests can be in flight at once; slots are numbered from 0.
	Slots() int
	// Submit starts work on 1 to Model().MaxBatch images and does not wait. Their memory must stay unchanged until Wait of the slot
	// returns. An image that cannot be read does not harm the others: its Image holds the error.
	Submit(slot int, images []engine.Image) error
	// Wait blocks until the slot's request is done. The result belongs to the predictor and is valid until the next Submit of this slot.
	Wait(slot int) (*BatchResult, error)
	// Tune changes how outputs are decoded, from the next Submit of each slot on. An error changes nothing.
	Tune(Decoding) error
	// Close waits for the work in flight and frees everything. It is idempotent.
	Close() error
}

// Networks are those that a predictor is made of, in the order in which they were named. Predictors that are made of others unwrap to them.
func Networks(p Predictor) []*Network {
	if n, single := p.(*Network); single {
		return []*Network{n}
	}
	var all []*Network
	if made, ok := p.(interface{ Unwrap() []Predictor }); ok {
		for _, below := range made.Unwrap() {
			all = append(all, Networks(below)...)
		}
	}
	return all
}

// Model is a loaded model and how its outputs are read.
type Model struct {
	engine.Model
	// Recognised is the head that the outputs are of, and why.
	Recognised head.Recognition
}

// BatchResult is what one request gave: one Image for each that was submitted, in their order. It and everything in it belong to the predictor
// and are valid until the next Submit of the same slot.
type BatchResult struct {
	Results []Result
	// Timing says where the time of the request went; zero when no image of it could be read.
	Timing engine.Timing
	// Decoding is how long the outputs took to become detections.
	Decoding time.Duration
	// Contradiction is nil while what comes out of the network fits the head that it was recognised as. Once it does not, nothing that comes
	// out means anything, and it stays so.
	Contradiction *Contradiction
}

// BatchResult is what one image shows.
type Result struct {
	// Detections are in pixels of the image, best first.
	Detections []postprocess.Detection
	// Map is what the image shows at every place of it, for networks that say that; else nil. There are no detections then.
	Map *postprocess.DenseMap
	// Stats counts what decoding did.
	Stats head.Stats
	// Err says why there are no detections when the image could not be read, or what the network gave for it not be decoded. The other
	// images of the request are not touched by it.
	Err error
}

// Clone returns an image that shares no memory with p.
func (p *Result) Clone() Result {
	c := *p
	c.Map = p.Map.Clone()
	c.Detections = slices.Clone(p.Detections)
	for i := range c.Detections {
		c.Detections[i] = c.Detections[i].Clone()
	}
	return c
}
