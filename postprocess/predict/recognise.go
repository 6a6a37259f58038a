package predict

import (
	"errors"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// errPlan is the error for a file that only TensorRT can read.
var errPlan = errors.New("the outputs of an engine plan are not known before it is opened")

// Recognise returns the head of a model, which must have been loaded, by its ONNX file alone: for a model that cannot be opened yet because
// its engine plan is still to be built. Errors are those of Open for such a file.
func (o *Options) Recognise() (head.Recognition, error) {
	if tensorrt.IsPlan(o.Bytes) {
		return head.Recognition{}, errPlan
	}
	file, err := onnx.Parse(o.Path, o.Bytes)
	if err != nil {
		return head.Recognition{}, err
	}
	inputs, err := file.Inputs()
	if err != nil {
		return head.Recognition{}, err
	}
	outputs, err := file.Outputs()
	if err != nil {
		return head.Recognition{}, err
	}
	m := engine.Model{Path: o.Path, Inputs: inputs, Outputs: outputs, Metadata: o.Metadata}
	sides := o.Metadata
	sides.Width, sides.Height = o.Sides(o.Metadata)
	if m.Image, m.NoImage = engine.FindImageInput(inputs, sides); m.Image != nil {
		m.Width, m.Height = m.Image.Width, m.Image.Height
	}
	decoder, err := o.Decoding.open(&m)
	if err != nil {
		return head.Recognition{}, err
	}
	return decoder.Recognised(), nil
}
