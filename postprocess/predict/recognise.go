package predict

import (
	"errors"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// errPlan is of a file that only TensorRT can read.
var errPlan = errors.New("an engine plan tells what it gives when it is opened")

// Recognise says what a model, which must have been loaded, gives by its ONNX file alone: for one that nothing here runs yet, because its
// engine plan is still to be built. Errors are those of Open that such a file can have.
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
