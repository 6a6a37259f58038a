package onnxruntime

import (
	"errors"
	"reflect"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/edge-infer/edge-infer/engine"
)

// request holds the tensors and binding for runs with certain input shapes, over the slot's memory. In the first run ONNX Runtime allocates
// the outputs, which gives their shapes; later runs write to the slot's memory.
type request struct {
	dims    []int64 // of all inputs, one after the other
	inputs  []ort.Value
	outputs []ort.Value // nil until the shapes are known
	binding *ort.IoBinding
	views   []engine.Tensor // of outputs
	// varying is set when the shapes of the outputs turn out to depend on the data.
	varying bool
}

func (r *request) destroy() {
	r.unbind()
	for _, value := range r.inputs {
		_ = value.Destroy() // always nil
	}
	*r = request{}
}

// unbind frees what bind made.
func (r *request) unbind() {
	if r.binding != nil {
		_ = r.binding.Destroy() // always nil
	}
	for _, value := range r.outputs {
		if value != nil {
			_ = value.Destroy() // always nil
		}
	}
	r.binding, r.outputs = nil, nil
}

// maxRequests is the number of input shapes that a slot caches in addition to its batch sizes.
const maxRequests = 16

// request returns the slot's request for these input shapes.
func (s *slot) request(dims []int64) (*request, error) {
	for _, r := range s.requests {
		if slices.Equal(r.dims, dims) {
			return r, nil
		}
	}
	if len(s.requests) >= maxRequests+s.engine.model.MaxBatch {
		s.requests[0].destroy()
		s.requests = slices.Delete(s.requests, 0, 1)
	}
	r := &request{dims: slices.Clone(dims), views: make([]engine.Tensor, len(s.engine.model.Outputs))}
	at := 0
	for i, info := range s.engine.model.Inputs {
		shape := r.dims[at : at+len(info.Shape)]
		at += len(info.Shape)
		value, err := ort.NewCustomDataTensor(orOne(shape), s.inputs[i].Data[:size(info.Type, shape)], elementTypes[info.Type])
		if err != nil {
			r.destroy()
			return nil, err
		}
		r.inputs = append(r.inputs, value)
	}
	s.requests = append(s.requests, r)
	return r, nil
}

// orOne returns the session's shape of a tensor: scalars are exposed with one dimension.
func orOne(shape []int64) []int64 {
	if len(shape) == 0 {
		return []int64{1}
	}
	return shape
}

// fixedShapes returns the output shapes if the file declares all of them, and whether they must be used because an output is float16, which
// onnxruntime_go cannot return when ONNX Runtime allocates it.
func (s *slot) fixedShapes() ([][]int64, bool) {
	half := false
	var shapes [][]int64
	for _, info := range s.engine.model.Outputs {
		if info.Shape == nil || slices.Contains(info.Shape, -1) {
			return nil, false
		}
		half = half || info.Type == engine.Float16
		shapes = append(shapes, slices.Clone(info.Shape))
	}
	return shapes, half
}

// measure runs the network only for the shapes of its outputs.
func (s *slot) measure(r *request) (shapes [][]int64, err error) {
	x := &s.engine.exposed
	ranks := make([]int, len(x.shapes))
	names, sizes := []string{}, []int{}
	for i, info := range s.engine.model.Outputs {
		ranks[i] = len(info.Shape)
		if x.ranks[i] != "" {
			names, sizes = append(names, x.ranks[i]), append(sizes, 1)
		}
	}
	answers, err := s.integers(r, names, sizes)
	if err != nil {
		return nil, err
	}
	names, sizes = names[:0], sizes[:0]
	for i := range ranks {
		if x.ranks[i] != "" {
			ranks[i], answers = int(answers[0][0]), answers[1:]
		}
		if ranks[i] > 0 {
			names, sizes = append(names, x.shapes[i]), append(sizes, ranks[i])
		}
	}
	if answers, err = s.integers(r, names, sizes); err != nil {
		return nil, err
	}
	for _, rank := range ranks {
		shape := []int64{}
		if rank > 0 {
			shape, answers = answers[0], answers[1:]
		}
		shapes = append(shapes, shape)
	}
	return shapes, nil
}

// integers runs the network for one-dimensional int64 outputs of the given sizes.
func (s *slot) integers(r *request, names []string, sizes []int) (answers [][]int64, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	binding, err := s.engine.session.CreateIoBinding()
	if err != nil {
		return nil, err
	}
	defer func() { _ = binding.Destroy() }() // always nil
	for i, name := range s.engine.exposed.inputs {
		err = errors.Join(err, binding.BindInput(name, r.inputs[i]))
	}
	tensors := make([]*ort.Tensor[int64], len(names))
	for i, name := range names {
		tensor, failed := ort.NewEmptyTensor[int64](ort.NewShape(int64(sizes[i])))
		if failed != nil {
			return nil, errors.Join(err, failed)
		}
		defer func() { _ = tensor.Destroy() }() // always nil
		tensors[i] = tensor
		err = errors.Join(err, binding.BindOutput(name, tensor))
	}
	if err == nil {
		err = s.engine.session.RunWithBinding(binding)
	}
	if err != nil {
		return nil, err
	}
	for _, tensor := range tensors {
		answers = append(answers, slices.Clone(tensor.GetData()))
	}
	return answers, nil
}

// bind allocates memory for the outputs and binds inputs and outputs for the next runs. On error the previous binding remains. Empty
// outputs are not bound; if their shapes were not measured, nothing is, since the next run may return more.
func (s *slot) bind(r *request, shapes [][]int64) error {
	x := &s.engine.exposed
	for i, info := range s.engine.model.Outputs {
		empty := engine.Elements(shapes[i]) == 0
		r.varying = r.varying || empty
		if empty && x.shapes == nil {
			return nil
		}
		r.views[i] = engine.Tensor{Name: info.Name, Type: info.Type, Shape: shapes[i]}
		if empty {
			continue
		}
		if err := s.outputMemory(r, i, shapes[i]); err != nil {
			return err
		}
		r.views[i].Data = s.outputs[i].Data[:size(info.Type, shapes[i])]
	}
	bound := request{outputs: make([]ort.Value, len(r.views))}
	for i, view := range r.views {
		if len(view.Data) == 0 {
			continue
		}
		shape := view.Shape
		if x.flat[i] {
			shape = []int64{engine.Elements(shape)}
		}
		value, err := ort.NewCustomDataTensor(shape, view.Data, elementTypes[view.Type])
		if err != nil {
			bound.destroy()
			return err
		}
		bound.outputs[i] = value
	}
	if !s.engine.deviceMemory {
		if err := s.bindIO(r, &bound); err != nil {
			bound.destroy()
			return err
		}
	}
	r.unbind()
	r.outputs, r.binding = bound.outputs, bound.binding
	return nil
}

// bindIO binds the inputs of r and the outputs of bound.
func (s *slot) bindIO(r, bound *request) error {
	var err error
	if bound.binding, err = s.engine.session.CreateIoBinding(); err != nil {
		return err
	}
	for i, name := range s.engine.exposed.inputs {
		err = errors.Join(err, bound.binding.BindInput(name, r.inputs[i]))
	}
	for i, name := range s.engine.exposed.outputs {
		if bound.outputs[i] != nil {
			err = errors.Join(err, bound.binding.BindOutput(name, bound.outputs[i]))
		}
	}
	return err
}

func size(t engine.DataType, shape []int64) int { return int(engine.Elements(shape)) * t.Size() }

// run executes the network and leaves the outputs in r.views.
func (s *slot) run(r *request) error {
	if s.engine.exposed.shapes != nil {
		return s.runMeasured(r)
	}
	if r.outputs == nil && !r.varying {
		if shapes, known := s.fixedShapes(); known {
			if err := s.bind(r, shapes); err != nil {
				return err
			}
		}
	}
	if r.outputs == nil || r.varying {
		return s.runUnbound(r)
	}
	if s.runBound(r) != nil {
		// The output shapes may have changed. Any other error occurs again.
		return s.runUnbound(r)
	}
	return nil
}

// runMeasured runs a model whose output shapes are measured first: once per input shape, or in every run if they depend on the data.
func (s *slot) runMeasured(r *request) error {
	if r.outputs != nil && !r.varying {
		if s.runBound(r) == nil {
			return nil
		}
		r.varying = true
	}
	shapes, err := s.measure(r)
	if err != nil {
		return err
	}
	if err := s.bind(r, shapes); err != nil {
		return err
	}
	return s.runBound(r)
}

func (s *slot) runBound(r *request) error {
	if !slices.ContainsFunc(r.outputs, func(v ort.Value) bool { return v != nil }) {
		return nil // all of them are empty
	}
	if r.binding != nil {
		return s.engine.session.RunWithBinding(r.binding)
	}
	return s.engine.session.Run(r.inputs, r.outputs)
}

// runUnbound lets ONNX Runtime allocate the outputs, copies them to the slot's memory and binds that for later runs. It is used for the
// first run of each shape, and for every run if output shapes depend on the data.
func (s *slot) runUnbound(r *request) error {
	allocated := make([]ort.Value, len(s.engine.model.Outputs))
	defer func() {
		for _, value := range allocated {
			// Values of unsupported types are interfaces with a nil pointer.
			if value != nil && !reflect.ValueOf(value).IsNil() {
				_ = value.Destroy() // always nil
			}
		}
	}()
	if err := s.engine.session.Run(r.inputs, allocated); err != nil {
		return err
	}
	shapes := make([][]int64, len(allocated))
	for i, value := range allocated {
		shapes[i] = value.GetShape()
		if s.engine.exposed.flat[i] {
			shapes[i] = []int64{} // of a scalar; the other flat ones are measured
		}
		r.varying = r.varying || r.outputs != nil && !slices.Equal(shapes[i], r.views[i].Shape)
	}
	if r.outputs == nil && !r.varying {
		if err := s.bind(r, shapes); err != nil {
			return err
		}
	}
	for i, value := range allocated {
		data, err := content(value)
		if err != nil {
			return err
		}
		if r.varying {
			info := s.engine.model.Outputs[i]
			r.views[i] = engine.Tensor{Name: info.Name, Type: info.Type, Shape: shapes[i], Data: slices.Clone(data)}
		} else {
			copy(r.views[i].Data, data)
		}
	}
	return nil
}
