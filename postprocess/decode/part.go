package decode

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// cut finds an image's part of every output that the head reads, and measures it.
func (d *Decoder) cut(result *engine.Result, number int) error {
	for role, index := range d.fit.Outputs {
		if index >= len(result.Outputs) {
			return fmt.Errorf("output %d of a result with %d", index, len(result.Outputs))
		}
		output := &result.Outputs[index]
		d.shapes[role] = output.Shape
		elements, err := d.elements(output, number)
		if err != nil {
			return err
		}
		size := int(elements) * output.Type.Size()
		data, to := output.Data[number*size:(number+1)*size], &d.parts[role]
		to.data, to.raw, to.kind = nil, data, output.Type
		if d.layout == head.LayoutSemantic && output.Type != engine.Float16 && output.Type != engine.Float32 {
			continue // class numbers are read as they are
		}
		switch output.Type {
		case engine.Float32:
			to.data = view[float32](data)
		case engine.Float16:
			to.data = to.grow(elements)
			scan.Widen(to.data, view[uint16](data))
		case engine.Int32:
			to.data = to.grow(elements)
			numbers(to.data, view[int32](data))
		case engine.Int64:
			to.data = to.grow(elements)
			numbers(to.data, view[int64](data))
		default:
			return fmt.Errorf("output %s is %v, only float32, float16, int32 and int64 are decoded", output.Name, output.Type)
		}
	}
	s, err := d.fit.Measure(d.shapes)
	if err != nil {
		return err
	}
	if s.Classes == 0 {
		s.Classes = d.columns
	}
	if d.columns == 0 && s.Classes > 0 { // the model left them open until its first result
		if d.classes > 0 && s.Classes != d.classes {
			return fmt.Errorf("%v has %s, not %d", d.shapes, head.Plural(s.Classes, "class"), d.classes)
		}
		if err := d.prepare(s.Classes, d.classes); err != nil {
			return err
		}
	}
	if s.Classes != d.columns {
		return fmt.Errorf("%v has %s, not %d", d.shapes, head.Plural(s.Classes, "class"), d.columns)
	}
	d.now = d.fit
	d.now.Sizes = s
	return nil
}

// elements is how many numbers of an output belong to an image.
func (d *Decoder) elements(output *engine.Tensor, number int) (int64, error) {
	all, shape := int64(len(output.Data))/int64(output.Type.Size()), output.Shape
	if d.about.Unbatched {
		// There may be no object at all.
		if number > 0 || !slices.Contains(shape, 0) && !fills(shape, all) || slices.Contains(shape, 0) && all > 0 {
			return 0, fmt.Errorf("output %s with %d numbers for shape %v and image %d", output.Name, all, shape, number)
		}
		return all, nil
	}
	if len(shape) == 0 || shape[0] <= int64(number) {
		return 0, fmt.Errorf("output %s with shape %v has no image %d", output.Name, shape, number)
	}
	each := all / shape[0]
	if !fills(shape[1:], each) {
		return 0, fmt.Errorf("output %s with %d numbers an image for shape %v", output.Name, each, shape)
	}
	return each, nil
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

// numbers converts integers: class numbers and counts, which a float32 holds exactly.
func numbers[T int32 | int64](to []float32, from []T) {
	for i, n := range from {
		to[i] = float32(n)
	}
}

// grow makes room for that many numbers in memory of the part's own.
func (p *part) grow(count int64) []float32 {
	if int64(cap(p.widened)) < count {
		p.widened = make([]float32, count)
	}
	return p.widened[:count]
}

// view reads bytes as numbers. The engine aligns its outputs to the element size.
func view[T float32 | uint16 | int32 | int64](data []byte) []T {
	var element T
	size := int(unsafe.Sizeof(element))
	if len(data) < size {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), len(data)/size)
}
