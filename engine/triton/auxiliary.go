package triton

import (
	"bytes"
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
)

// partition divides a list by a predicate and keeps the order in both parts.
func partition[T any](list []T, is func(T) bool) (these, others []T) {
	for _, one := range list {
		if is(one) {
			these = append(these, one)
		} else {
			others = append(others, one)
		}
	}
	return these, others
}

// imagesFirst moves auxiliary inputs behind the others. Requests use this order.
func imagesFirst(inputs []kserve.TensorMetadata) []kserve.TensorMetadata {
	others, known := partition(inputs, func(in kserve.TensorMetadata) bool { return !isAuxiliary(in) })
	return append(others, known...)
}

func isAuxiliary(in kserve.TensorMetadata) bool {
	kind, ok := kserve.ElementType(in.Datatype)
	return ok && engine.IsAuxiliary(engine.TensorInfo{Name: in.Name, Type: kind, Shape: in.Shape})
}

// fillAuxiliary creates the auxiliary inputs for the largest batch. Requests differ only in how many rows they send.
func (e *Engine) fillAuxiliary(inputs []engine.TensorInfo) error {
	for _, in := range inputs {
		one, ok := engine.AuxiliaryTensor(in, e.img)
		if !ok {
			return fmt.Errorf("input %q is %v, which is too large", in.Name, in.Shape)
		}
		data := bytes.Repeat(one.Data, max(e.model.MaxBatch, e.img.Batch))
		e.auxiliary = append(e.auxiliary, kserve.Tensor{Name: in.Name, Datatype: kserve.Datatype(in.Type), Shape: one.Shape, Data: data})
	}
	return nil
}

// withAuxiliary appends the auxiliary inputs for a batch to the inputs of a request.
func (e *Engine) withAuxiliary(inputs []kserve.Tensor, batch int) []kserve.Tensor {
	for _, t := range e.auxiliary {
		shape := append(make([]int64, 0, 3), t.Shape...)
		shape[0] = int64(batch)
		t.Shape = shape
		kind, _ := kserve.ElementType(t.Datatype)
		t.Data = t.Data[:int64(kind.Size())*engine.Elements(shape)]
		inputs = append(inputs, t)
	}
	return inputs
}
