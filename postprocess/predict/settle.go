package predict

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// settle gives a model what its file leaves to whoever runs it: inputs beside the image whose values are known, one output where others
// export one and it has several, how a classifier's classes stand to each other, and the way of taking images that networks with its head
// have, where neither the file nor a setting says another.
func (o *Options) complete(model *onnx.Model) error {
	sides := o.Metadata
	sides.Width, sides.Height = o.Sides(o.Metadata)
	if sides.Preprocess.IsZero() {
		sides.Preprocess.Range = []float64{0, 255} // any: only the size is asked
	}
	inputs, err := model.Inputs()
	if err != nil {
		return nil //nolint:nilerr // the backend says it better
	}
	known := slices.DeleteFunc(slices.Clone(inputs), func(in engine.TensorInfo) bool { return !engine.Beside(in) })
	inputs = slices.DeleteFunc(inputs, engine.Beside)
	img, err := engine.FindImageInput(inputs, sides)
	if err != nil {
		return nil //nolint:nilerr // Open says what is wrong with the inputs
	}
	outputs, err := model.Outputs()
	if err != nil {
		return nil //nolint:nilerr // the backend says it better
	}
	scales := levels(outputs, img.Width, img.Height)
	if !o.TensorInputs && (len(known) > 0 || scales != nil) {
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

// rewrite has a model that was changed take the place of its file, with the data that lies beside it.
func (o *Options) rewrite(model *onnx.Model) (err error) {
	if err := model.Embed(filepath.Dir(o.Path)); err != nil {
		return err
	}
	o.Bytes, err = model.Bytes()
	return err
}

// presumePreset fills how images are taken, where nothing says it and the head does. It reports whether it has.
func (o *Options) presumePreset(m *engine.Model) bool {
	layout, err := head.ParseLayout(string(o.Decoding.Layout))
	if err != nil || !o.Metadata.Preprocess.IsZero() {
		return false
	}
	about, err := head.Recognise(m, layout)
	if err != nil || about.Preset == "" {
		return false
	}
	o.Metadata.Preprocess, o.Metadata.Presumed = engine.Preprocess{Preset: about.Preset}, string(about.Layout)
	return true
}

// resettle opens an engine again whose head is known only now: a plan of somebody else's, or a file that leaves sizes open. Which way of
// taking images it was opened with does not matter until then.
func (o *Options) reopenPreset(ctx context.Context, e engine.Engine) (engine.Engine, error) {
	m := e.Model()
	if m.Image == nil || !m.Image.Assumed {
		return e, nil
	}
	m.Image = nil // that nothing says how images are taken is no reason to refuse it here
	if !o.presumePreset(&m) {
		return e, nil
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return o.open(ctx)
}

// reopenSize opens a server's model again in the shape of the images to come, where it leaves its size open: no file has told so before.
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

// makeConstant makes an input beside the image's a constant of the model. One serves for a batch of any size.
func makeConstant(g *onnx.GraphProto, in *engine.TensorInfo, img *engine.ImageInput) {
	shape, values, ok := engine.BesideValues(*in, img)
	if !ok {
		return
	}
	g.Input = slices.DeleteFunc(g.Input, func(v *onnx.ValueInfoProto) bool { return v.GetName() == in.Name })
	g.Initializer = append(g.Initializer, onnx.NewInts(in.Name, values, shape...))
}
