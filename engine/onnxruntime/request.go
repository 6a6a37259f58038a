package onnxruntime

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/edge-infer/edge-infer/engine"
)

// request is everything one run of the network with certain input shapes needs, made once: tensors over the slot's memory and their
// binding. The first run lets ONNX Runtime allocate the outputs and so learns their shapes; later runs write where they are to be read.
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
	if r.binding != nil {
		_ = r.binding.Destroy() // always nil
	}
	for _, value := range slices.Concat(r.inputs, r.outputs) {
		if value != nil {
			_ = value.Destroy() // always nil
		}
	}
	*r = request{}
}

// maxRequests bounds the shapes that a slot remembers besides its batch sizes.
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
		value, err := ort.NewCustomDataTensor(shape, s.inputs[i].Data[:size(info.Type, shape)], elementTypes[info.Type])
		if err != nil {
			r.destroy()
			return nil, err
		}
		r.inputs = append(r.inputs, value)
	}
	if shapes, ok := s.halfShapes(r); ok {
		if err := s.bind(r, shapes); err != nil {
			r.destroy()
			return nil, err
		}
	}
	s.requests = append(s.requests, r)
	return r, nil
}

// halfShapes guesses the shapes of the outputs for models with float16 outputs, which the module cannot return when ONNX Runtime allocated
// them: a free first dimension is the batch.
func (s *slot) halfShapes(r *request) ([][]int64, bool) {
	if !slices.ContainsFunc(s.engine.model.Outputs, func(t engine.TensorInfo) bool { return t.Type == engine.Float16 }) {
		return nil, false
	}
	var shapes [][]int64
	for _, info := range s.engine.model.Outputs {
		shape := slices.Clone(info.Shape)
		if len(shape) > 0 && shape[0] < 0 && len(r.dims) > 0 {
			shape[0] = r.dims[0]
		}
		if len(shape) == 0 || slices.Min(shape) < 1 {
			return nil, false
		}
		shapes = append(shapes, shape)
	}
	return shapes, true
}

// bind gives the outputs their memory and fixes where the next runs read and write. It changes nothing when it fails, or when an output
// is empty: then there is nothing to bind, and the next run may give more.
func (s *slot) bind(r *request, shapes [][]int64) error {
	for i, info := range s.engine.model.Outputs {
		if engine.Elements(shapes[i]) == 0 {
			r.varying = true
			return nil
		}
		if err := s.outputMemory(r, i, shapes[i]); err != nil {
			return err
		}
		r.views[i] = engine.Tensor{Name: info.Name, Type: info.Type, Shape: shapes[i], Data: s.outputs[i].Data[:size(info.Type, shapes[i])]}
	}
	bound := request{}
	for i, view := range r.views {
		value, err := ort.NewCustomDataTensor(shapes[i], view.Data, elementTypes[view.Type])
		if err != nil {
			bound.destroy()
			return err
		}
		bound.outputs = append(bound.outputs, value)
	}
	if !s.engine.deviceMemory {
		var err error
		if bound.binding, err = s.engine.session.CreateIoBinding(); err != nil {
			bound.destroy()
			return err
		}
		for i, info := range s.engine.model.Inputs {
			err = errors.Join(err, bound.binding.BindInput(info.Name, r.inputs[i]))
		}
		for i, info := range s.engine.model.Outputs {
			err = errors.Join(err, bound.binding.BindOutput(info.Name, bound.outputs[i]))
		}
		if err != nil {
			bound.destroy()
			return err
		}
	}
	r.outputs, r.binding = bound.outputs, bound.binding
	return nil
}

func size(t engine.DataType, shape []int64) int { return int(engine.Elements(shape)) * t.Size() }

// run executes the network and leaves the outputs in r.views.
func (s *slot) run(r *request) error {
	if r.outputs == nil || r.varying {
		return s.runUnbound(r)
	}
	var err error
	if r.binding != nil {
		err = s.engine.session.RunWithBinding(r.binding)
	} else {
		err = s.engine.session.Run(r.inputs, r.outputs)
	}
	if err != nil {
		// The outputs may have other shapes this time; if that is not the trouble, it shows again.
		return s.runUnbound(r)
	}
	return nil
}

// runUnbound lets ONNX Runtime allocate the outputs, copies them to the slot's memory and binds that for the runs to come. Only the first
// run of each shape comes here, and every run of a model whose output shapes depend on the data.
func (s *slot) runUnbound(r *request) error {
	allocated := make([]ort.Value, len(s.engine.model.Outputs))
	defer func() {
		for _, value := range allocated {
			// A scalar output, which the binding cannot hold, comes as an interface around a nil pointer.
			if value != nil && !reflect.ValueOf(value).IsNil() {
				_ = value.Destroy() // always nil
			}
		}
	}()
	if err := s.engine.session.Run(r.inputs, allocated); err != nil {
		if slices.ContainsFunc(s.engine.model.Outputs, func(t engine.TensorInfo) bool { return t.Type == engine.Float16 }) {
			return fmt.Errorf("float16 outputs need sizes that are fixed in the file, apart from the batch: %w", err)
		}
		return err
	}
	shapes := make([][]int64, len(allocated))
	for i, value := range allocated {
		shapes[i] = value.GetShape()
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
