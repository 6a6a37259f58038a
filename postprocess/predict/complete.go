package predict

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// complete adds to a model what its file leaves open: values of known further inputs, one joined output where it has one for each scale, an
// image input of uint8 where it has one of int32, the activation of a classifier, and the preprocessing that is usual for its head if
// neither the file nor a setting specifies one.
func (o *Options) complete(model *onnx.Model) error {
	sides := o.Metadata
	sides.Width, sides.Height = o.Sides(o.Metadata)
	if sides.Preprocess.IsZero() {
		sides.Preprocess.Range = []float64{0, 255} // any value: only the size matters
	}
	inputs, err := model.Inputs()
	if err != nil {
		return nil //nolint:nilerr // the backend's error is more precise
	}
	known := slices.DeleteFunc(slices.Clone(inputs), func(in engine.TensorInfo) bool { return !engine.IsAuxiliary(in) })
	inputs = slices.DeleteFunc(inputs, engine.IsAuxiliary)
	integers := len(inputs) == 1 && inputs[0].Type == engine.Int32
	if integers {
		inputs[0].Type = engine.Uint8
	}
	img, err := engine.FindImageInput(inputs, sides)
	if err != nil {
		return nil //nolint:nilerr // Open returns the error of the inputs
	}
	outputs, err := model.Outputs()
	if err != nil {
		return nil //nolint:nilerr // the backend's error is more precise
	}
	scales := levels(outputs, img.Width, img.Height)
	if !o.TensorInputs && (len(known) > 0 || scales != nil || integers) {
		if integers {
			castImage(model.Proto.Graph, &inputs[0])
		}
		for i := range known {
			makeConstant(model.Proto.Graph, &known[i], img)
		}
		if scales != nil {
			join(model.Proto.Graph, scales)
		}
		if err := o.rewrite(model); err != nil {
			return err
		}
		if outputs, err = model.Outputs(); err != nil {
			return err
		}
	}
	if o.Metadata.Activation == "" && len(outputs) == 1 && len(outputs[0].Shape) == 2 {
		o.Metadata.Activation = activation(model.Proto.Graph, outputs[0].Name)
	}
	o.presumePreset(&engine.Model{Outputs: outputs, Metadata: o.Metadata, Width: img.Width, Height: img.Height})
	if scales == nil && len(known) == 0 && o.ProbeSizes != nil && o.Width == 0 && o.Sources == nil && sizeOpen(inputs[0]) {
		o.Sources = o.ProbeSizes()
	}
	return nil
}

// sizeOpen reports whether an image input leaves both sides open.
func sizeOpen(in engine.TensorInfo) bool {
	open := 0
	for _, size := range in.Shape[1:] { // without the batch
		if size < 0 {
			open++
		}
	}
	return open >= 2
}

// rewrite replaces the file's bytes by those of the changed model, with its external data embedded.
func (o *Options) rewrite(model *onnx.Model) (err error) {
	if err := model.Embed(filepath.Dir(o.Path)); err != nil {
		return err
	}
	o.Bytes, err = model.Bytes()
	return err
}

// presumePreset sets the preprocessing that is usual for the head if nothing specifies one. It reports whether it did. Ultralytics'
// metadata specifies a letterbox for all detectors, although those of boxes in shares of the input stretch images: the head decides.
func (o *Options) presumePreset(m *engine.Model) bool {
	layout, err := head.ParseLayout(string(o.Decoding.Layout))
	if err != nil || !o.Metadata.Preprocess.IsZero() && !o.inferred {
		return false
	}
	about, err := head.Recognise(m, layout)
	if err != nil || about.Preset == "" || o.inferred && about.Preset != rtdetrPreset {
		return false
	}
	o.Metadata.Preprocess = engine.Preprocess{Preset: about.Preset}
	if !o.inferred {
		o.Metadata.Presumed = string(about.Layout)
	}
	o.inferred = false
	return true
}

const rtdetrPreset = "ultralytics-rtdetr"

// isLetterbox reports whether a preprocessing is the one that follows from metadata of Ultralytics' detectors.
func isLetterbox(p engine.Preprocess) bool {
	return reflect.DeepEqual(p, engine.Preprocess{Preset: "ultralytics"})
}

// reopenPreset reopens an engine whose head was not known before: that of a foreign plan, or of a file that leaves sizes open.
func (o *Options) reopenPreset(ctx context.Context, e engine.Engine) (engine.Engine, error) {
	m := e.Model()
	o.inferred = o.inferred || o.Metadata.Preprocess.IsZero() && isLetterbox(m.Metadata.Preprocess)
	if m.Image == nil || !m.Image.Assumed && !o.inferred {
		return e, nil
	}
	m.Image = nil // missing preprocessing is no error here
	if !o.presumePreset(&m) {
		return e, nil
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return o.open(ctx)
}

// reopenSize reopens a server's model that leaves its size open in the size of the images to come.
func (o *Options) reopenSize(ctx context.Context, e engine.Engine) (engine.Engine, error) {
	m := e.Model()
	open := m.Image != nil && sizeOpen(m.Inputs[m.Image.Index])
	if !open || !o.remote() || o.Bytes != nil || o.ProbeSizes == nil || o.Width > 0 || o.Sources != nil {
		return e, nil
	}
	o.Sources = o.ProbeSizes()
	if width, height := o.Sides(m.Metadata); width == m.Width && height == m.Height {
		return e, nil
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return o.open(ctx)
}

// makeConstant replaces a further input with known values by a constant, which serves batches of any size.
func makeConstant(g *onnx.GraphProto, in *engine.TensorInfo, img *engine.ImageInput) {
	t, ok := engine.AuxiliaryTensor(*in, img)
	if !ok {
		return
	}
	kind := onnx.TensorProto_INT64
	if t.Type == engine.Float32 {
		kind = onnx.TensorProto_FLOAT
	}
	removeInput(g, in.Name)
	g.Initializer = append(g.Initializer, onnx.NewRaw(in.Name, kind, t.Data, t.Shape...))
}

func removeInput(g *onnx.GraphProto, name string) {
	g.Input = slices.DeleteFunc(g.Input, func(v *onnx.ValueInfoProto) bool { return v.GetName() == name })
}

// castImage replaces an image input of int32, as TensorFlow's exports of MoveNet have it, by one of uint8 that is cast.
func castImage(g *onnx.GraphProto, in *engine.TensorInfo) {
	pixels := in.Name + "/pixels"
	removeInput(g, in.Name)
	g.Input = append(g.Input, onnx.NewValueInfo(pixels, onnx.TensorProto_UINT8, in.Shape))
	cast := onnx.NewNode("Cast", in.Name+"/cast", []string{pixels}, []string{in.Name}, onnx.Int("to", int64(onnx.TensorProto_INT32)))
	g.Node = slices.Insert(g.Node, 0, cast)
}
