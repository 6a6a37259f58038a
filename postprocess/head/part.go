package head

import (
	"fmt"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// cut finds a picture's part of every output that the head reads, and measures it.
func (d *Decoder) cut(result *engine.Result, number int) error {
	for role, index := range d.fit.outputs {
		if index >= len(result.Outputs) {
			return fmt.Errorf("output %d of a result with %d", index, len(result.Outputs))
		}
		output := &result.Outputs[index]
		if len(output.Shape) == 0 || output.Shape[0] <= int64(number) {
			return fmt.Errorf("output %s with shape %v has no picture %d", output.Name, output.Shape, number)
		}
		d.shapes[role] = output.Shape
		elements := int64(len(output.Data)) / int64(output.Type.Size()) / output.Shape[0]
		if !fills(output.Shape[1:], elements) {
			return fmt.Errorf("output %s with %d numbers a picture for shape %v", output.Name, elements, output.Shape)
		}
		size := int(elements) * output.Type.Size()
		data, to := output.Data[number*size:(number+1)*size], &d.parts[role]
		switch output.Type {
		case engine.Float32:
			to.data = view[float32](data)
		case engine.Float16:
			if int64(cap(to.widened)) < elements {
				to.widened = make([]float32, elements)
			}
			to.data = to.widened[:elements]
			scan.Widen(to.data, view[uint16](data))
		default:
			return fmt.Errorf("output %s is %v, only float32 and float16 are decoded", output.Name, output.Type)
		}
	}
	s, err := d.fit.measure(d.shapes)
	if err != nil {
		return err
	}
	if s.classes == 0 {
		s.classes = d.classes
	}
	if d.classes == 0 && s.classes > 0 { // the model left them open until its first result
		if err := d.prepare(s.classes); err != nil {
			return err
		}
	}
	if s.classes != d.classes {
		return fmt.Errorf("%v has %s, not %d", d.shapes, plural(s.classes, "class"), d.classes)
	}
	d.now = d.fit
	d.now.sizes = s
	return nil
}

// fills reports whether a tensor of that shape has count elements.
func fills(shape []int64, count int64) bool {
	elements := int64(1)
	for _, size := range shape {
		if size < 1 || elements > count/size {
			return false
		}
		elements *= size
	}
	return elements == count
}

// view reads bytes as numbers. The engine aligns its outputs to the element size.
func view[T float32 | uint16](data []byte) []T {
	var element T
	size := int(unsafe.Sizeof(element))
	if len(data) < size {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), len(data)/size)
}
