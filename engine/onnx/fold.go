package onnx

import (
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
)

// FoldBatchNorm merges each BatchNormalization into the Conv or ConvTranspose before it if nothing else reads the Conv's output and all
// parameters are constants: w' = w * scale / sqrt(variance + epsilon), b' = (b - mean) * scale / sqrt(variance + epsilon) + bias. It
// returns the number of folded nodes.
func (m *Model) FoldBatchNorm() (int, error) {
	g := m.Proto.Graph
	x := NewIndex(g)
	removed := make(map[*NodeProto]bool)
	for _, norm := range g.Node {
		if norm.GetOpType() != "BatchNormalization" || !norm.IsStandard() || norm.IntOr("training_mode", 0) != 0 || len(norm.Output) != 1 {
			continue
		}
		conv := x.Producer[norm.In(0)]
		if conv == nil || !conv.IsStandard() || removed[conv] || x.SoleReader(norm.In(0)) != norm {
			continue
		}
		if op := conv.GetOpType(); op != "Conv" && op != "ConvTranspose" {
			continue
		}
		folded, err := foldInto(g, x, conv, norm)
		if err != nil {
			return 0, unsupported(m.Path, "batch normalization "+norm.GetName()+": "+err.Error(), fetchAgain)
		}
		if folded {
			conv.Output[0] = norm.Output[0]
			removed[norm] = true
		}
	}
	kept := g.Node[:0]
	for _, n := range g.Node {
		if !removed[n] {
			kept = append(kept, n)
		}
	}
	g.Node = kept
	m.DropUnused()
	return len(removed), nil
}

func foldInto(g *GraphProto, x *Index, conv, norm *NodeProto) (bool, error) {
	weight := x.Initializer[conv.In(1)]
	if weight == nil || TensorProto_DataType(weight.GetDataType()) != TensorProto_FLOAT || len(weight.Dims) < 3 {
		return false, nil
	}
	channels := weight.Dims[0]
	group := conv.IntOr("group", 1)
	if conv.GetOpType() == "ConvTranspose" {
		channels = weight.Dims[1] * group
	}
	parameters := make([][]float32, 4)
	for i := range parameters {
		t := x.Constant(norm.In(i + 1))
		if t == nil {
			return false, nil
		}
		values, err := t.Floats()
		if err != nil {
			return false, err
		}
		if int64(len(values)) != channels {
			return false, nil
		}
		parameters[i] = values
	}
	scale, shift := parameters[0], parameters[1]
	mean, variance := parameters[2], parameters[3]
	bias := make([]float32, channels)
	if name := conv.In(2); name != "" {
		t := x.Initializer[name]
		if t == nil {
			return false, nil
		}
		values, err := t.Floats()
		if err != nil || int64(len(values)) != channels {
			return false, err
		}
		bias = values
	}
	values, err := weight.Floats()
	if err != nil || len(values) == 0 {
		return false, err
	}
	epsilon := float64(norm.FloatOr("epsilon", 1e-5))
	factor := make([]float64, channels)
	for c := range factor {
		factor[c] = float64(scale[c]) / math.Sqrt(float64(variance[c])+epsilon)
		bias[c] = float32((float64(bias[c])-float64(mean[c]))*factor[c] + float64(shift[c]))
	}
	if conv.GetOpType() == "Conv" {
		each := len(values) / int(channels)
		for i := range values {
			values[i] = float32(float64(values[i]) * factor[i/each])
		}
	} else {
		// The weights of a ConvTranspose have the order input channel, output channel of the group, kernel.
		perGroup, inputs := int(weight.Dims[1]), int(weight.Dims[0])
		each := len(values) / (inputs * perGroup)
		for i := range values {
			in, out := i/(each*perGroup), i/each%perGroup
			values[i] = float32(float64(values[i]) * factor[in/max(inputs/int(group), 1)*perGroup+out])
		}
	}
	biasTensor := x.Initializer[conv.In(2)]
	if biasTensor == nil {
		biasTensor = &TensorProto{Name: proto.String(weight.GetName() + "_bias")}
	}
	conv.Input = []string{conv.Input[0], storeOwn(g, x, weight, values, weight.Dims), storeOwn(g, x, biasTensor, bias, []int64{channels})}
	return true, nil
}

// storeOwn stores values in an initializer with a single reader: in t itself if nothing else reads it, otherwise in a new one.
func storeOwn(g *GraphProto, x *Index, t *TensorProto, values []float32, dims []int64) string {
	if x.Initializer[t.GetName()] == t && len(x.Readers[t.GetName()]) == 1 {
		t.SetFloats(values)
		return t.GetName()
	}
	name := x.UniqueName(t.GetName() + "_folded")
	fresh := NewFloats(name, values, dims...)
	g.Initializer = append(g.Initializer, fresh)
	x.Initializer[name] = fresh
	x.Readers[name] = make([]*NodeProto, 1)
	return name
}

// DropUnused removes the initializers and Constant nodes that nothing reads, and their entries in the inputs of old files.
func (m *Model) DropUnused() {
	g := m.Proto.Graph
	x := NewIndex(g)
	unread := func(name string) bool { return len(x.Readers[name]) == 0 && !x.Outputs[name] }
	g.Node = slices.DeleteFunc(g.Node, func(n *NodeProto) bool { return n.GetOpType() == "Constant" && unread(n.Out(0)) })
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *TensorProto) bool { return unread(t.GetName()) })
	g.Input = slices.DeleteFunc(g.Input, func(v *ValueInfoProto) bool { return x.Initializer[v.GetName()] != nil && unread(v.GetName()) })
}
