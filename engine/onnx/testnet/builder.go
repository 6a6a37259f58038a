// Package testnet builds networks with the architecture of published detectors and random weights, for tests and measurements of rewriters
// and backends.
package testnet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"google.golang.org/protobuf/proto"
)

// Builder builds a graph node by node. Tensors are named after their node, as PyTorch's exporter does.
type Builder struct {
	graph  *onnx.GraphProto
	random *rand.Rand
	taken  map[string]int
}

// NewBuilder starts an empty graph; its random weights depend on the seed only.
func NewBuilder(seed uint64) *Builder {
	return &Builder{
		graph: &onnx.GraphProto{Name: proto.String("main_graph")}, random: rand.New(rand.NewPCG(seed, 1)),
		taken: make(map[string]int),
	}
}

// Input adds a float32 input; a dimension of -1 is dynamic.
func (b *Builder) Input(name string, shape ...int64) string {
	b.graph.Input = append(b.graph.Input, onnx.NewValueInfo(name, onnx.TensorProto_FLOAT, shape))
	return name
}

// Output makes a tensor an output of the graph.
func (b *Builder) Output(name string, shape ...int64) {
	b.graph.Output = append(b.graph.Output, onnx.NewValueInfo(name, onnx.TensorProto_FLOAT, shape))
}

// Model returns the finished model.
func (b *Builder) Model(opset int64) *onnx.Model {
	return &onnx.Model{Path: "testnet", Proto: &onnx.ModelProto{
		IrVersion: proto.Int64(8), ProducerName: proto.String("edge-infer testnet"), Graph: b.graph,
		OpsetImport: []*onnx.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(opset)}},
	}}
}

// Node adds a node with one output and returns the output's name.
func (b *Builder) Node(operator, name string, inputs []string, attributes ...*onnx.AttributeProto) string {
	return b.Nodes(operator, name, inputs, 1, attributes...)[0]
}

// Nodes adds a node with several outputs and returns their names.
func (b *Builder) Nodes(operator, name string, inputs []string, outputs int, attributes ...*onnx.AttributeProto) []string {
	name = b.unique(name + "/" + operator)
	var names []string
	for i := range outputs {
		names = append(names, fmt.Sprintf("%s_output_%d", name, i))
	}
	b.graph.Node = append(b.graph.Node, onnx.NewNode(operator, name, inputs, names, attributes...))
	return names
}

// Rename renames the last tensor of that name, for outputs of the graph.
func (b *Builder) Rename(from, to string) string {
	for _, n := range b.graph.Node {
		for i, name := range n.Output {
			if name == from {
				n.Output[i] = to
			}
		}
	}
	return to
}

func (b *Builder) unique(name string) string {
	b.taken[name]++
	if n := b.taken[name]; n > 1 {
		return fmt.Sprintf("%s_%d", name, n-1)
	}
	return name
}

// Ints adds an int64 initializer.
func (b *Builder) Ints(name string, values ...int64) string {
	name = b.unique(name)
	b.graph.Initializer = append(b.graph.Initializer, onnx.NewInts(name, values, int64(len(values))))
	return name
}

// Scalar adds an int64 initializer without dimensions.
func (b *Builder) Scalar(name string, value int64) string {
	name = b.unique(name)
	b.graph.Initializer = append(b.graph.Initializer, onnx.NewInts(name, []int64{value}))
	return name
}

// Floats adds a float32 initializer.
func (b *Builder) Floats(name string, values []float32, dims ...int64) string {
	name = b.unique(name)
	b.graph.Initializer = append(b.graph.Initializer, onnx.NewFloats(name, values, dims...))
	return name
}

// Random adds a float32 initializer of normal random numbers.
func (b *Builder) Random(name string, mean, deviation float64, dims ...int64) string {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(mean + deviation*b.random.NormFloat64())
	}
	return b.Floats(name, values, dims...)
}

// Convolution describes one Conv.
type Convolution struct {
	In, Out, Kernel, Stride, Group int64
	NoBias                         bool
	BiasMean                       float64
}

// Conv adds a Conv with padding for an unchanged size at stride 1. The weights preserve the variance after an activation.
func (b *Builder) Conv(name, x string, c Convolution) string {
	c.Stride, c.Group = max(c.Stride, 1), max(c.Group, 1)
	fan := float64(c.In / c.Group * c.Kernel * c.Kernel)
	module := strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", ".")
	inputs := []string{x, b.Random(module+".weight", 0, 1.5/math.Sqrt(fan), c.Out, c.In/c.Group, c.Kernel, c.Kernel)}
	if !c.NoBias {
		inputs = append(inputs, b.Random(module+".bias", c.BiasMean, 0.1, c.Out))
	}
	p := c.Kernel / 2
	return b.Node("Conv", name, inputs, onnx.Ints("dilations", 1, 1), onnx.Int("group", c.Group),
		onnx.Ints("kernel_shape", c.Kernel, c.Kernel),
		onnx.Ints("pads", p, p, p, p), onnx.Ints("strides", c.Stride, c.Stride))
}

// Norm adds a BatchNormalization with random statistics.
func (b *Builder) Norm(name, x string, channels int64) string {
	module := strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", ".")
	variance := make([]float32, channels)
	for i := range variance {
		variance[i] = 0.5 + b.random.Float32()
	}
	return b.Node("BatchNormalization", name, []string{
		x, b.Random(module+".weight", 1, 0.1, channels), b.Random(module+".bias", 0, 0.1, channels),
		b.Random(module+".running_mean", 0, 0.1, channels), b.Floats(module+".running_var", variance, channels),
	}, onnx.Float("epsilon", 1e-3))
}

// SiLU adds x * sigmoid(x).
func (b *Builder) SiLU(name, x string) string {
	return b.Node("Mul", name, []string{x, b.Node("Sigmoid", name, []string{x})})
}
