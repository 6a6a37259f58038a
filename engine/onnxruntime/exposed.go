package onnxruntime

import (
	"path/filepath"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// exposed describes how the session's inputs and outputs differ from the model's. onnxruntime_go supports neither scalars nor float16
// outputs of unknown size; models with these get a few additional nodes.
type exposed struct {
	inputs, outputs []string // the session's names
	flat            []bool   // outputs that are flattened to one dimension
	// shapes names outputs with the shapes of the model's outputs, ranks those with the ranks that the file does not declare. Both are nil
	// if the shapes need not be measured.
	shapes, ranks []string
}

// expose changes the graph as far as its inputs and outputs require. changed reports whether it did.
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

// exposure edits a graph.
type exposure struct {
	graph   *onnx.GraphProto
	index   *onnx.Index
	changed bool
}

// unsqueeze replaces a scalar input by one of shape [1] and returns its name.
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

// flatten replaces an output by its flattened form and returns its name.
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

// measure adds an output with the shape of a value and returns its name.
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
