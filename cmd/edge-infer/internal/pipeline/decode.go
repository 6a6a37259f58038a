package pipeline

import (
	"fmt"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Detector decodes what an engine gives with a postprocess.Decoder. Frame goroutine only after OpenDetector.
type Detector struct {
	decoder *postprocess.Decoder
	shapes  [][]int64 // a scratch shape for each output, batch of one
}

// OpenDetector fits the decoder to the model's outputs. Layout, thresholds and classes are set by the caller, what the model knows of itself
// is filled in here.
func OpenDetector(model engine.Model, decoder *postprocess.Decoder) (*Detector, error) {
	decoder.Task = string(model.Metadata.Task)
	decoder.Labels = len(model.Metadata.Labels)
	decoder.Width, decoder.Height = model.Width, model.Height
	d := &Detector{decoder: decoder}
	for _, output := range model.Outputs {
		d.shapes = append(d.shapes, append([]int64(nil), output.Shape...))
	}
	if err := decoder.Open(d.shapes...); err != nil {
		return nil, err
	}
	return d, nil
}

// Decode implements Decoder.
func (d *Detector) Decode(result *engine.Result, image, width, height int, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if image >= len(result.Transforms) {
		return dst, fmt.Errorf("decode: image %d of a result for %d", image, len(result.Transforms))
	}
	transform := postprocess.Transform(result.Transforms[image])
	if result.Candidates != nil {
		dst, _, err := d.decoder.DecodeCandidates(result.Candidates[image], transform, width, height, dst)
		return dst, err
	}
	index := d.decoder.Output()
	if index >= len(result.Outputs) {
		return dst, fmt.Errorf("decode: output %d of a result with %d", index, len(result.Outputs))
	}
	output := &result.Outputs[index]
	if len(output.Shape) == 0 || output.Shape[0] <= int64(image) {
		return dst, fmt.Errorf("decode: output %s with shape %v has no image %d", output.Name, output.Shape, image)
	}
	shape := append(d.shapes[index][:0], output.Shape...)
	d.shapes[index] = shape
	size := len(output.Data) / int(shape[0])
	data := output.Data[image*size : (image+1)*size]
	shape[0] = 1
	var err error
	switch output.Type {
	case engine.Float32:
		dst, _, err = d.decoder.Decode(view[float32](data), shape, transform, width, height, dst)
	case engine.Float16:
		dst, _, err = d.decoder.DecodeHalf(view[uint16](data), shape, transform, width, height, dst)
	default:
		err = fmt.Errorf("decode: output %s is %v, only float32 and float16 are decoded", output.Name, output.Type)
	}
	return dst, err
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
