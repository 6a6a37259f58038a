// Package engine defines the contract between the frame loop and the backend that runs the network. It is pure Go, without cgo and without
// a backend.
package engine

// Engine runs one model. Submit and Wait of a slot are called by one goroutine at a time; different slots may be used by different
// goroutines. Close is idempotent and may be called from any goroutine.
type Engine interface {
	// Model describes the loaded model. It does not change while the engine is open.
	Model() Model
	// Alloc returns memory that the engine reads without a copy: mapped pinned memory with CUDA, page-aligned memory without. It is
	// valid until Buffer.Free or Close.
	Alloc(size int) (*Buffer, error)
	// Slots returns the number of requests that can be in flight at once. Slots are numbered from 0.
	Slots() int
	// Submit letterboxes the images into the slot's input and starts the network. It does not wait. len(images) is 1 to
	// Model().MaxBatch; the images' memory must stay unchanged until Wait of the slot returns.
	Submit(slot int, images []Image) error
	// SubmitTensors starts the network on tensors as they are, for models whose inputs are not one image. The tensors must name every
	// input; their memory must stay unchanged until Wait of the slot returns.
	SubmitTensors(slot int, inputs []Tensor) error
	// Wait blocks until the slot's request is done. The engine owns the result, which is valid until the next Submit of this slot.
	Wait(slot int) (*Result, error)
	// Close waits for the work in flight and frees everything, buffers included. It is idempotent.
	Close() error
}

// Result is the result of one request. It belongs to the engine and is valid until the next Submit of the same slot.
type Result struct {
	// Outputs are the network's outputs in the model's order, with the batch that was run as their first dimension. It is empty when
	// the engine left only Candidates on the host.
	Outputs []Tensor
	// Transforms has one entry per submitted image; empty after SubmitTensors.
	Transforms []Transform
	// Candidates has one list per submitted image when the engine listed the boxes on its device (see Options.Filter). Nil when decoding is
	// left to the host.
	Candidates []Candidates
	// Timing breaks the request's duration down.
	Timing Timing
}

// Candidates are the boxes of one image that an engine listed on its device, each with its best class.
type Candidates struct {
	// Rows has CandidateFields numbers for each box, the boxes in no particular order.
	Rows []float32
	// Truncated counts boxes over the threshold that did not fit the list.
	Truncated int
	// Impossible counts boxes with an invalid score: NaN, below 0 or above 1.
	Impossible int
}

// CandidateFields is the length of one row of Candidates: x1, y1, x2, y2 in input pixels, score, class.
const CandidateFields = 6

// ScoreTolerance is the allowed excess of scores over 0 to 1: quantized sigmoids slightly exceed 1.
const ScoreTolerance = 1.0 / 64

// Timing is the timing of one request in nanoseconds. Submitted and Done are CLOCK_MONOTONIC times, the rest are durations. A backend that
// cannot measure a part leaves it 0. If the device filters candidates, Filter is the time for that and for copying them to the host, and
// Inference is the network alone; otherwise Inference includes copying the outputs to the host.
type Timing struct {
	Submitted, Done               int64
	Preprocess, Inference, Filter int64
}

// Waiting returns how long nothing was done for the request, in nanoseconds: it was behind another one on the same device, or its result
// was not collected yet. It is 0 for requests whose parts ran at the same time.
func (t *Timing) Waiting() int64 { return max(0, t.Done-t.Submitted-t.Preprocess-t.Inference-t.Filter) }

// Transform maps a point of the network's input to the source image: source = (input - Pad) / Scale.
type Transform struct {
	ScaleX, ScaleY float32
	PadX, PadY     float32
}

// Buffer is host memory that an engine reads without a copy.
type Buffer struct {
	// Data is the whole buffer; it is not Go heap memory and must not be used after Free.
	Data []byte
	free func()
}

// NewBuffer wraps memory of an engine; free may be nil and is called once.
func NewBuffer(data []byte, free func()) *Buffer { return &Buffer{Data: data, free: free} }

// Free releases the memory. It is idempotent and accepts nil.
func (b *Buffer) Free() {
	if b == nil || b.free == nil {
		return
	}
	free := b.free
	b.free, b.Data = nil, nil
	free()
}
