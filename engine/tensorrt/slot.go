package tensorrt

// #include "shim.h"
import "C"

import (
	"math"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// slot runs one request at a time with its own context, stream and memory. One goroutine at a time uses it.
type slot struct {
	engine  *Engine
	handle  *C.ei_slot
	request *C.ei_request
	busy    bool
	warned  bool // about graph capture

	// Staging memory for images outside the engine's memory, and device copies of all images if memory is not mapped. Indexed by batch
	// position; both grow to the largest image.
	host   []*cuda.HostMemory
	device []*cuda.Memory
	list   *candidates

	result     engine.Result
	transforms []engine.Transform
	outputs    []engine.Tensor
}

func (e *Engine) openSlot(o *Options) (*slot, error) {
	s := &slot{engine: e}
	options := C.ei_slot_options{
		mapped: flag(e.shared), graph: flag(!o.NoGraph), wait: o.Wait.c(), profile: C.int(o.Profile),
	}
	filtered := e.model.Width > 0 && e.model.Filter != nil
	options.discard = flag(filtered)
	var ee C.ei_error
	if C.ei_slot_open(e.handle, &options, &s.handle, &s.request, &ee) != 0 {
		return nil, shimError("open", &ee)
	}
	images := e.model.MaxBatch
	s.transforms = make([]engine.Transform, images)
	s.host, s.device = make([]*cuda.HostMemory, images), make([]*cuda.Memory, images)
	for i := range e.tensors {
		if e.tensors[i].input != 0 {
			continue
		}
		info := e.model.Outputs[len(s.outputs)]
		s.outputs = append(s.outputs, engine.Tensor{Name: info.Name, Type: info.Type, Shape: make([]int64, 0, 8)})
	}
	if !filtered {
		return s, nil
	}
	var err error
	s.list, err = e.newCandidates(s.request)
	if err != nil {
		return s, err
	}
	return s, nil
}

// inputIndex returns the image input's index among all tensors.
func (e *Engine) inputIndex() int {
	for i := range e.tensors {
		if e.tensors[i].input != 0 {
			return i
		}
	}
	return -1
}

func (s *slot) close() {
	C.ei_slot_close(s.handle)
	for _, m := range s.host {
		_ = m.Free() // cannot be handled; the context is destroyed next
	}
	for _, m := range s.device {
		_ = m.Free()
	}
	s.list.close()
}

// slot returns a slot after checking the number and that the engine is open.
func (e *Engine) slot(op string, number int) (*slot, error) {
	if e.closed {
		return nil, newError(op, engine.ErrClosed, "", "the engine is closed")
	}
	if number < 0 || number >= len(e.slots) {
		return nil, newError(op, engine.ErrShape, "", "slot %d, there are %d", number, len(e.slots))
	}
	return e.slots[number], nil
}

func (e *Engine) idle(number int) (*slot, error) {
	s, err := e.slot("submit", number)
	if err != nil {
		return nil, err
	}
	if s.busy {
		return nil, newError("submit", nil, "", "slot %d is in flight: wait for it first", number)
	}
	return s, nil
}

// Submit letterboxes the images into the input and starts the network, in one C call without allocation.
func (e *Engine) Submit(number int, images []engine.Image) error {
	e.open.RLock()
	defer e.open.RUnlock()
	s, err := e.idle(number)
	if err != nil {
		return err
	}
	if err := e.model.RefusesImages("submit"); err != nil {
		return err
	}
	if len(images) < 1 || len(images) > e.model.MaxBatch {
		return newError("submit", engine.ErrShape, "", "%d images, the engine takes 1 to %d", len(images), e.model.MaxBatch)
	}
	for i := range images {
		if err := images[i].Check(); err != nil {
			return err
		}
		if images[i].OnDevice() && !e.ReadsDevice(images[i].Device.Memory.GPU()) {
			return newError("submit", engine.ErrUnsupported, "", "an image is in the memory of another GPU")
		}
	}
	for i := range images {
		if err := s.setImage(i, &images[i]); err != nil {
			return err
		}
	}
	batch := len(images)
	if e.img.Batch > 0 {
		batch = e.img.Batch
	}
	in := &s.request.io[e.inputIndex()]
	in.rank = 4
	for d, n := range e.img.Shape(batch) {
		in.shape[d] = C.int64_t(n)
	}
	s.request.images = C.int(len(images))
	s.list.prepare(s.request, len(images))
	s.result.Transforms = s.transforms[:len(images)]
	return s.submit()
}

func (s *slot) submit() error {
	s.busy = true
	if C.ei_slot_submit(s.handle, &s.request.error) != 0 {
		err := shimError("submit", &s.request.error)
		// The started work must end before the slot's memory is written again.
		C.ei_slot_wait(s.handle, &s.request.error)
		s.busy = false
		return err
	}
	return nil
}

// setImage sets the image's device address and its letterbox.
func (s *slot) setImage(i int, im *engine.Image) error {
	p := &s.request.image[i]
	in := &s.request.io[s.engine.inputIndex()]
	output := uint64(in.device) + uint64(i*s.engine.img.ImageBytes())
	p.host = nil
	p.staging = 0
	p.bytes = 0
	p.ready = nil
	if im.OnDevice() {
		p.ready = C.ei_cuda_event(im.Device.Memory.Ready())
		s.transforms[i] = s.engine.kernels.letterbox(p, im, 0, output)
		return nil
	}
	size := im.Stride*(im.Format.Rows(im.Height)-1) + im.Format.RowBytes(im.Width)
	data := im.Data[:size]
	source, ours := s.engine.memory.address(data)
	memory := unsafe.Pointer(unsafe.SliceData(data))
	if !ours {
		if err := s.growHost(i, size); err != nil {
			return err
		}
		copy(s.host[i].Data, data)
		source, memory = s.host[i].Address, unsafe.Pointer(&s.host[i].Data[0])
	}
	if !s.engine.mapped {
		if err := s.growDevice(i, size); err != nil {
			return err
		}
		source = s.device[i].Address
		p.host, p.staging, p.bytes = memory, C.ei_cuda_pointer(source), C.size_t(size)
	}
	s.transforms[i] = s.engine.kernels.letterbox(p, im, source, output)
	return nil
}

func (s *slot) growHost(i, size int) error {
	if s.host[i] != nil && len(s.host[i].Data) >= size {
		return nil
	}
	memory, err := s.engine.device.AllocHost(size)
	if err != nil {
		return err
	}
	old := s.host[i]
	s.host[i] = memory
	return old.Free()
}

func (s *slot) growDevice(i, size int) error {
	if s.device[i] != nil && s.device[i].Size >= size {
		return nil
	}
	memory, err := s.engine.device.Alloc(size)
	if err != nil {
		return err
	}
	old := s.device[i]
	s.device[i] = memory
	return old.Free()
}

// SubmitTensors starts the network on tensors. They are copied into the slot's pinned memory before it returns.
func (e *Engine) SubmitTensors(number int, inputs []engine.Tensor) error {
	e.open.RLock()
	defer e.open.RUnlock()
	s, err := e.idle(number)
	if err != nil {
		return err
	}
	if len(inputs) != len(e.model.Inputs) {
		return newError("submit", engine.ErrShape, "", "%d tensors for %d inputs", len(inputs), len(e.model.Inputs))
	}
	given := uint32(0) // bit set by tensor index; there are at most 32
	for i := range inputs {
		at, err := e.checkInput(&inputs[i])
		if err != nil {
			return err
		}
		if given&(1<<at) != 0 {
			return newError("submit", engine.ErrShape, "", "input %s is given twice", inputs[i].Name)
		}
		given |= 1 << at
	}
	for i := range inputs {
		in := &inputs[i]
		at := e.tensor(in.Name)
		io := &s.request.io[at]
		io.rank = C.int(len(in.Shape))
		for d, n := range in.Shape {
			io.shape[d] = C.int64_t(n)
		}
		copy(unsafe.Slice((*byte)(io.host), int(io.capacity)), in.Data)
	}
	s.request.images = 0
	s.result.Transforms = nil
	return s.submit()
}

// tensor returns the index of the tensor with that name, -1 if there is none.
func (e *Engine) tensor(name string) int {
	inputs, outputs := 0, 0
	for i := range e.tensors {
		info := &engine.TensorInfo{}
		if e.tensors[i].input != 0 {
			info = &e.model.Inputs[inputs]
			inputs++
		} else {
			info = &e.model.Outputs[outputs]
			outputs++
		}
		if info.Name == name {
			return i
		}
	}
	return -1
}

// checkInput returns the index of an input tensor after checking its type, shape and data.
func (e *Engine) checkInput(in *engine.Tensor) (int, error) {
	at := e.tensor(in.Name)
	if at < 0 || e.tensors[at].input == 0 {
		return 0, newError("submit", engine.ErrShape, "", "the model has no input %.80q", in.Name)
	}
	t := &e.tensors[at]
	if in.Type != types[t._type] {
		return 0, newError("submit", engine.ErrShape, "", "input %s is %v, not %v", in.Name, types[t._type], in.Type)
	}
	if len(in.Shape) != int(t.rank) {
		return 0, newError("submit", engine.ErrShape, "", "input %s has %d dimensions, not %d", in.Name, int(t.rank), len(in.Shape))
	}
	elements := int64(1)
	for d, n := range in.Shape {
		if n < int64(t.min[d]) || n > int64(t.max[d]) {
			return 0, newError("submit", engine.ErrShape, "build the plan for these shapes",
				"dimension %d of input %s is %d, the plan takes %d to %d", d, in.Name, n, int64(t.min[d]), int64(t.max[d]))
		}
		if n != 0 && elements > math.MaxInt64/8/n {
			return 0, newError("submit", engine.ErrShape, "", "input %s is too large", in.Name)
		}
		elements *= n
	}
	if want := elements * int64(in.Type.Size()); int64(len(in.Data)) != want {
		return 0, newError("submit", engine.ErrShape, "", "input %s has %d bytes, not %d", in.Name, want, len(in.Data))
	}
	return at, nil
}

// Wait waits until the slot's request is done, in one C call without allocation.
func (e *Engine) Wait(number int) (*engine.Result, error) {
	e.open.RLock()
	defer e.open.RUnlock()
	s, err := e.slot("wait", number)
	if err != nil {
		return nil, err
	}
	if !s.busy {
		return nil, newError("wait", nil, "", "slot %d has no request in flight", number)
	}
	s.busy = false
	if C.ei_slot_wait(s.handle, &s.request.error) != 0 {
		return nil, shimError("wait", &s.request.error)
	}
	if s.request.graph_refusal[0] != 0 && !s.warned {
		s.warned = true
		e.log.Warn("no CUDA graph, frames are enqueued step by step", "slot", number, "reason", C.GoString(&s.request.graph_refusal[0]))
	}
	s.collect()
	return &s.result, nil
}

// collect sets the result from the shim's request.
func (s *slot) collect() {
	r := s.request
	s.result.Timing = engine.Timing{
		Submitted: int64(r.submitted), Done: int64(r.done), Preprocess: int64(r.preprocess), Inference: int64(r.inference),
		Filter: int64(r.filtering),
	}
	s.result.Outputs, s.result.Candidates = s.outputs[:0], nil
	if s.list != nil && r.images > 0 {
		s.result.Candidates = s.list.collect(int(r.images))
		return
	}
	n := 0
	for i := range s.engine.tensors {
		if s.engine.tensors[i].input != 0 {
			continue
		}
		io := &r.io[i]
		out := &s.outputs[n]
		n++
		out.Shape = out.Shape[:io.rank]
		elements := 1
		for d := range out.Shape {
			out.Shape[d] = int64(io.shape[d])
			elements *= int(io.shape[d])
		}
		out.Data = unsafe.Slice((*byte)(io.host), elements*int(io.element))
	}
	s.result.Outputs = s.outputs[:n]
}
