package onnxruntime

import (
	"path/filepath"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// exposed is how the session's inputs and outputs differ from the model's, for what the module cannot hold: tensors without a dimension,
// and float16 outputs whose sizes only a run tells. For such models it adds a few nodes to the graph; others stay as they are.
type exposed struct {
	inputs, outputs []string // the session's names
	flat            []bool   // outputs that come as one dimension, whatever the model's have
	// shapes name outputs that hold the sizes of the model's, and ranks those that hold how many there are where the file does not say. Both
	// are nil for models whose sizes come with the outputs.
	shapes, ranks []string
}

// expose looks at the model's inputs and outputs and changes the file where it has to. changed says that its bytes are others now.
func expose(file *onnx.Model, inputs, outputs []engine.TensorInfo) (x exposed, changed bool, err error) {
	g := exposure{graph: file.Proto.Graph, index: onnx.NewIndex(file.Proto.Graph)}
	for _, info := range inputs {
		name := info.Name
		if len(info.Shape) == 0 {
			name = g.unsqueeze(name)
		}
		x.inputs = append(x.inputs, name)
	}
	measured := slices.ContainsFunc(outputs, func(t engine.TensorInfo) bool {
		return t.Shape == nil || t.Type == engine.Float16 && slices.Contains(t.Shape, -1)
	})
	for _, info := range outputs {
		if measured {
			shape, rank := g.measure(info.Name), ""
			if info.Shape == nil {
				rank = g.measure(shape)
			}
			x.shapes, x.ranks = append(x.shapes, shape), append(x.ranks, rank)
		}
		name, flat := info.Name, len(info.Shape) == 0
		if flat {
			name = g.flatten(name)
		}
		x.outputs, x.flat = append(x.outputs, name), append(x.flat, flat)
	}
	if g.changed {
		err = file.Embed(filepath.Dir(file.Path))
	}
	return x, g.changed, err
}

// exposure changes a graph.
type exposure struct {
	graph   *onnx.GraphProto
	index   *onnx.Index
	changed bool
}

// unsqueeze replaces an input without a dimension by one of a single element, and returns its name.
func (g *exposure) unsqueeze(name string) string {
	one, sizes := g.index.UniqueName(name+"_one"), g.index.UniqueName(name+"_sizes")
	for _, input := range g.graph.Input {
		if input.GetName() == name {
			input.Name, input.Type = &one, onnx.NewValueInfo(one, elementType(input), []int64{1}).Type
		}
	}
	g.graph.Initializer = append(g.graph.Initializer, onnx.NewInts(sizes, nil, 0))
	node := onnx.NewNode("Reshape", g.index.UniqueName(name+"_scalar"), []string{one, sizes}, []string{name})
	g.graph.Node = slices.Insert(g.graph.Node, 0, node)
	g.changed = true
	return one
}

// flatten replaces an output by one of a single dimension, and returns its name.
func (g *exposure) flatten(name string) string {
	flat, sizes := g.index.UniqueName(name+"_flat"), g.index.UniqueName(name+"_sizes")
	g.graph.Initializer = append(g.graph.Initializer, onnx.NewInts(sizes, []int64{-1}, 1))
	g.graph.Node = append(g.graph.Node, onnx.NewNode("Reshape", g.index.UniqueName(name+"_flatten"), []string{name, sizes}, []string{flat}))
	for i, output := range g.graph.Output {
		if output.GetName() == name {
			g.graph.Output[i] = onnx.NewValueInfo(flat, elementType(output), []int64{-1})
		}
	}
	g.changed = true
	return flat
}

// measure adds an output that holds the sizes of a value, and returns its name.
func (g *exposure) measure(name string) string {
	sizes := g.index.UniqueName(name + "_shape")
	g.graph.Node = append(g.graph.Node, onnx.NewNode("Shape", g.index.UniqueName(name+"_measure"), []string{name}, []string{sizes}))
	g.graph.Output = append(g.graph.Output, onnx.NewValueInfo(sizes, onnx.TensorProto_INT64, []int64{-1}))
	g.changed = true
	return sizes
}

func elementType(v *onnx.ValueInfoProto) onnx.TensorProto_DataType {
	return onnx.TensorProto_DataType(v.GetType().GetTensorType().GetElemType())
}
