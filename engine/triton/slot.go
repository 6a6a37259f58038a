package triton

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/engine/preprocess"
	"github.com/edge-infer/edge-infer/engine/worker"
	"github.com/edge-infer/edge-infer/internal/clock"
)

// slot holds one request in flight: its memory, its worker and its result.
type slot struct {
	engine *Engine
	number int

	worker.Slot

	// The worker's.
	images        preprocess.Batch
	input         *engine.Buffer
	device        *preprocess.DeviceBatch // nil without a GPU whose memory is shared
	onHost        bool                    // the letterboxed images are in input
	onDevice      bool                    // the letterboxed images are in device
	letterboxTime int64                   // nanoseconds
	dims          []int64
	batch         int64
	request       request
	jpeg          compressor
	answer        answer
	tried         []*endpoint // for the request; the last one gave the result
}

func (e *Engine) newSlot(number int) (*slot, error) {
	s := &slot{engine: e, number: number, answer: *e.newAnswer(e.largestAnswer(e.model.MaxBatch))}
	s.request.Inputs = make([]kserve.Tensor, 0, len(e.model.Inputs))
	if e.img != nil {
		s.images = preprocess.NewBatch(e.img, e.model.MaxBatch)
		s.Result.Transforms = make([]engine.Transform, 0, e.model.MaxBatch)
		var err error
		if s.input, err = e.memory.Alloc(e.model.MaxBatch * e.img.ImageBytes()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// largestAnswer returns the limit of an answer to so many images in bytes: their outputs as JSON text, about six times their binary size,
// and 1 MiB more; unknownLimit while a size of the outputs is open, which it is until an image has been run.
func (e *Engine) largestAnswer(batch int) int {
	const text, others = 6, 1 << 20
	size, known := kserve.BatchBytes(e.model.Outputs, batch)
	switch {
	case known:
		return min(text*size+others, answerLimit)
	case e.img == nil: // tensors of any size
		return answerLimit
	}
	return unknownLimit
}

// work runs the slot's request. The worker goroutine calls it.
func (s *slot) work() error {
	began := clock.Monotonic()
	s.onHost = false
	s.onDevice = false
	s.letterboxTime = 0
	s.batch = 0
	s.Result.Transforms = s.Result.Transforms[:0]
	if err := s.infer(); err != nil {
		return err
	}
	done := clock.Monotonic()
	s.Result.Timing = engine.Timing{Submitted: s.Submitted, Done: done, Preprocess: s.letterboxTime, Inference: done - began - s.letterboxTime}
	return nil
}

// imageError is a failed letterbox, which must not suspend a server.
type imageError struct{ error }

// load prepares the request for a server. It returns the regions that hold the image, or nil if tensors are sent.
func (s *slot) load(p *endpoint) (*regionPair, error) {
	if len(s.Images) == 0 {
		return nil, s.send()
	}
	var l *regionPair
	if s.number < len(p.regions) {
		l = p.regions[s.number]
	}
	if l != nil && l.input.memory == nil {
		if s.engine.gpuDisabledReason() == "" {
			err := s.letterboxDevice()
			if err == nil {
				s.useRegions(l)
				return l, nil
			}
			s.engine.disableGPU(err)
			p.wakeUp()
		}
		l = nil // the watcher sets up system memory
	}
	if err := s.letterboxHost(); err != nil {
		return nil, imageError{err}
	}
	if l == nil {
		return nil, s.send()
	}
	copy(l.input.memory, s.input.Data[:int(s.batch)*s.engine.img.ImageBytes()])
	s.useRegions(l)
	return l, nil
}

// letterboxHost letterboxes the images into the batch positions of the input.
func (s *slot) letterboxHost() error {
	if s.onHost {
		return nil
	}
	began := clock.Monotonic()
	batch, transforms, err := s.images.Run(s.Images, s.input.Data, s.Result.Transforms[:0])
	return s.letterboxed(&s.onHost, began, batch, transforms, err)
}

// letterboxDevice letterboxes the images on the GPU.
func (s *slot) letterboxDevice() error {
	if s.onDevice {
		return nil
	}
	began := clock.Monotonic()
	batch, transforms, err := s.device.Run(s.Images, s.Result.Transforms[:0])
	return s.letterboxed(&s.onDevice, began, batch, transforms, err)
}

func (s *slot) letterboxed(where *bool, began int64, batch int, transforms []engine.Transform, err error) error {
	s.letterboxTime += clock.Monotonic() - began
	if err != nil {
		return err
	}
	*where = true
	s.Result.Transforms, s.batch = transforms, int64(batch)
	s.dims = append(s.dims[:0], s.engine.img.Shape(batch)...)
	return nil
}

// send prepares the request with its tensors in the message.
func (s *slot) send() error {
	e := s.engine
	s.request.Outputs, s.request.key = nil, requestKey{}
	inputs := s.request.Inputs[:0]
	for i := range s.Tensors {
		if t := &s.Tensors[i]; len(s.Images) == 0 {
			inputs = append(inputs, kserve.Tensor{Name: t.Name, Datatype: kserve.Datatype(t.Type), Shape: t.Shape, Data: t.Data})
		}
	}
	if len(s.Images) > 0 {
		img := s.imageTensor()
		img.Data = s.input.Data[:int(s.batch)*e.img.ImageBytes()]
		inputs = e.withAuxiliary(append(inputs, img), int(s.batch))
		s.request.key = requestKey{batch: int(s.batch)}
	}
	var err error
	if e.jpeg {
		inputs[0], err = e.jpegTensor(&s.jpeg, inputs[0].Data)
		s.request.key = requestKey{} // the size varies
	}
	s.request.Inputs = inputs
	return err
}

func (s *slot) imageTensor() kserve.Tensor {
	return kserve.Tensor{Name: s.engine.model.Inputs[0].Name, Datatype: kserve.Datatype(s.engine.img.Type), Shape: s.dims}
}

// useRegions prepares the request to read its images from shared memory.
func (s *slot) useRegions(l *regionPair) {
	s.request.key = requestKey{slot: s.number + 1, batch: int(s.batch)}
	s.request.Inputs = s.engine.withAuxiliary(append(s.request.Inputs[:0], s.imageTensor()), int(s.batch))
	l.place(s.engine, &s.request, int(s.batch))
}

// infer tries servers until one answers, the timeout passes or the retry budget is empty.
func (s *slot) infer() error {
	e := s.engine
	deadline := time.Now().Add(e.timeout)
	s.tried = s.tried[:0]
	again := true // an idle connection may have been closed by a healthy server
	var last error
	for attempt := 0; ; attempt++ {
		if attempt > 0 && (e.choose(s.tried) == nil || time.Now().After(deadline) || !e.budget.take()) {
			break
		}
		p := e.reserve(s.tried)
		if p == nil {
			break
		}
		if attempt == 0 {
			e.budget.earn()
		} else {
			e.retries.Add(1)
		}
		s.tried = append(s.tried, p)
		err := s.attempt(p, deadline)
		if err == nil {
			return nil
		}
		if e.context.Err() != nil {
			return e.refuse(engine.ErrClosed, "the engine is closed")
		}
		if wrong, ours := errors.AsType[imageError](err); ours {
			return e.fail("submit", wrong.error)
		}
		last = err
		switch classify(err) {
		case refused:
			if len(s.Images) > 0 { // images are always valid, so the server's model has changed
				p.suspend(err)
			}
			return &engine.Error{Op: "wait", Backend: Name, Kind: engine.ErrShape, Message: p.address.String() + ": " + e.explain(err)}
		case busy:
		case lost:
			if again {
				again, s.tried = false, s.tried[:len(s.tried)-1]
				continue
			}
			p.suspend(err)
		case unhealthy:
			p.suspend(err)
		}
	}
	return s.failed(last)
}

// attempt runs the request on one reserved server, with half of the remaining time if another server is healthy.
func (s *slot) attempt(p *endpoint, deadline time.Time) error {
	limit := deadline
	if s.engine.choose(s.tried) != nil {
		limit = time.Now().Add(time.Until(deadline) / 2)
	}
	ctx, cancel := context.WithDeadline(s.engine.context, limit)
	defer cancel()
	defer p.inFlight.Add(-1)
	err := p.infer(ctx, s)
	if err != nil {
		s.answer.drop() // a faulty answer may have made it large
	}
	if err != nil && ctx.Err() != nil { // whatever the transport returned
		return ctx.Err()
	}
	return err
}

// failed returns the error of a request that no server answered.
func (s *slot) failed(last error) error {
	e := s.engine
	failure := &engine.Error{Op: "wait", Backend: Name, Kind: engine.ErrUnavailable}
	var mismatch *engine.Error
	switch reasons := e.reasons(); {
	case errors.As(last, &mismatch) && mismatch.Kind != nil:
		failure.Kind, failure.Message = mismatch.Kind, e.explain(last)
	case reasons != "":
		failure.Message = "no server answers: " + reasons
	case last != nil:
		failure.Message = e.explain(last)
	default:
		failure.Message = "no server is healthy"
	}
	return failure
}

// offset returns the distance of data from the previous aligned address.
func offset(data []byte, alignment int) int {
	return int(uintptr(unsafe.Pointer(&data[0])) % uintptr(alignment))
}
