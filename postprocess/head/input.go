package head

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// input is one image's part of the network's outputs.
type input struct {
	index         int // of the image in the request
	transform     engine.Transform
	width, height int       // of the source image in pixels
	scoresOnly    bool      // details are not needed, and those of the last Decode must stay
	match         match     // with the image's own sizes
	shapes        [][]int64 // of the outputs that the head reads, in their order
	tensors       []tensor
	stats         Stats
}

// tensor is an image's part of an output.
type tensor struct {
	data      []float32 // nil for class numbers of a segmentation map
	converted []float32 // memory for data of another type
	raw       []byte    // as the engine returned it
	kind      engine.DataType
}

// begin starts with another image.
func (in *input) begin(t *engine.Transform, index, width, height int) {
	in.transform = *t
	in.index = index
	in.width, in.height = width, height
	in.scoresOnly = false
	in.stats = Stats{}
}

// set takes an image's part of an output.
func (in *input) set(role int, output *engine.Tensor, index int, about *Description) error {
	in.shapes[role] = output.Shape
	count, err := elements(output, index, about.Unbatched)
	if err != nil {
		return err
	}
	size := int(count) * output.Type.Size()
	data := output.Data[index*size : (index+1)*size]
	to := &in.tensors[role]
	to.data = nil
	to.raw = data
	to.kind = output.Type
	if about.Task == engine.Semantic && output.Type != engine.Float16 && output.Type != engine.Float32 {
		return nil // class numbers are read as they are
	}
	switch output.Type {
	case engine.Float32:
		to.data = view[float32](data)
	case engine.Float16:
		to.data = to.grow(count)
		scan.Widen(to.data, view[uint16](data))
	case engine.Int32:
		to.data = to.grow(count)
		convert(to.data, view[int32](data))
	case engine.Int64:
		to.data = to.grow(count)
		convert(to.data, view[int64](data))
	default:
		return fmt.Errorf("output %s is %v, only float32, float16, int32 and int64 are decoded", output.Name, output.Type)
	}
	return nil
}

// elements returns how many elements of an output belong to an image.
func elements(output *engine.Tensor, index int, unbatched bool) (int64, error) {
	all := int64(len(output.Data)) / int64(output.Type.Size())
	shape := output.Shape
	if unbatched {
		// There may be no object at all.
		if index > 0 || !slices.Contains(shape, 0) && !fills(shape, all) || slices.Contains(shape, 0) && all > 0 {
			return 0, fmt.Errorf("output %s with %d numbers for shape %v and image %d", output.Name, all, shape, index)
		}
		return all, nil
	}
	if len(shape) == 0 || shape[0] <= int64(index) {
		return 0, fmt.Errorf("output %s with shape %v has no image %d", output.Name, shape, index)
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

// convert converts integers: class numbers and counts, which a float32 holds exactly.
func convert[T int32 | int64](to []float32, from []T) {
	for i, n := range from {
		to[i] = float32(n)
	}
}

// grow returns memory of the tensor for count numbers.
func (t *tensor) grow(count int64) []float32 {
	if int64(cap(t.converted)) < count {
		t.converted = make([]float32, count)
	}
	return t.converted[:count]
}

// view returns bytes as numbers. The engine aligns its outputs to the element size.
func view[T float32 | uint16 | int32 | int64](data []byte) []T {
	var element T
	size := int(unsafe.Sizeof(element))
	if len(data) < size {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), len(data)/size)
}

// tensor returns the image's part of an output by its index in the model.
func (in *input) tensor(output int) []float32 {
	return in.tensors[slices.Index(in.match.outputs, output)].data
}

// mismatch is the error for outputs that the head cannot read.
func (in *input) mismatch() error {
	about := in.match.describe()
	return fmt.Errorf("decode: %w: %s of %v", ErrOutput, about.Layout, in.shapes)
}

// toSource maps a box of the network's input to the source image, without clipping it.
func (in *input) toSource(box postprocess.Box) postprocess.Box {
	t := &in.transform
	return postprocess.Box{
		X1: (box.X1 - t.PadX) / t.ScaleX, Y1: (box.Y1 - t.PadY) / t.ScaleY,
		X2: (box.X2 - t.PadX) / t.ScaleX, Y2: (box.Y2 - t.PadY) / t.ScaleY,
	}
}

// wholeImage returns the source image as a box.
func (in *input) wholeImage() postprocess.Box {
	return postprocess.Box{X2: float32(in.width), Y2: float32(in.height)}
}

// extraNumbers are the numbers of each box besides coordinates and scores. measure has checked that all lie within the output.
type extraNumbers struct {
	engine.Numbers
	data []float32
}

// extra returns the further numbers of a detailed head at that position.
func (in *input) extra(at engine.Numbers) extraNumbers {
	return extraNumbers{at, in.tensor(at.Output)}
}

func (e *extraNumbers) at(box int32, i int) float32 {
	return e.data[e.Offset+int64(box)*e.Step+int64(i)*e.Next]
}

// all returns the first count numbers of a box, where they are contiguous.
func (e *extraNumbers) all(box int32, count int) []float32 {
	return e.data[e.Offset+int64(box)*e.Step:][:count]
}

// perImage is memory for the results of each image of a request, by its index: they stay valid until the next image with that index.
type perImage[T any] []T

func (p *perImage[T]) at(index int) *T {
	for len(*p) <= index {
		var none T
		*p = append(*p, none)
	}
	return &(*p)[index]
}

// resize returns memory for count elements, which keep their old values.
func resize[T any](memory *[]T, count int) []T {
	*memory = slices.Grow((*memory)[:0], count)[:count]
	return *memory
}

// setDetails gives every detection an empty detail.
func setDetails(memory *[]postprocess.Detail, found []postprocess.Detection) {
	all := resize(memory, len(found))
	for i := range found {
		all[i] = postprocess.Detail{}
		found[i].Detail = &all[i]
	}
}
