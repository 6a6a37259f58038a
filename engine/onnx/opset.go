package onnx

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// RaiseOpset rewrites models between these opsets.
const (
	OldestOpset = 11
	NewestOpset = 24
)

// RaiseOpset rewrites the model for a newer version of the ONNX operators, as per-channel quantization (13) and quantization of float16
// (19) require. It does nothing if the model has it already. Between 11 and 19 it converts the attributes that became inputs; it returns an
// error if the change of an operator is unknown.
func (m *Model) RaiseOpset(to int) error {
	from := m.Opset()
	if from >= to {
		return nil
	}
	if from < OldestOpset || to > 19 {
		return m.refuse(to, "uses opset %d and cannot be raised to %d", from, to)
	}
	x := NewIndex(m.Proto.Graph)
	for _, n := range m.Proto.Graph.Node {
		if !n.IsStandard() {
			continue
		}
		if len(n.Subgraphs()) > 0 {
			return m.refuse(to, "node %q (%s) has a subgraph, which cannot be raised to opset %d", n.GetName(), n.GetOpType(), to)
		}
		if err := m.raise(n, x, from, to); err != nil {
			return err
		}
	}
	for _, o := range m.Proto.OpsetImport {
		if o.GetDomain() == "" || o.GetDomain() == "ai.onnx" {
			o.Version = proto.Int64(int64(to))
		}
	}
	// Opset 13 requires IR 7, opset 19 IR 9.
	version := int64(7)
	if to > 15 {
		version = 8
	}
	if to == 19 {
		version = 9
	}
	if m.Proto.GetIrVersion() < version {
		m.Proto.IrVersion = &version
	}
	return nil
}

// refuse returns the error of a model that must be exported again with another opset.
func (m *Model) refuse(to int, format string, arguments ...any) error {
	return unsupported(m.Path, fmt.Sprintf(format, arguments...), fmt.Sprintf("export the model again with opset=%d", to))
}

func (m *Model) raise(n *NodeProto, x *Index, from, to int) error {
	crosses := func(version int) bool { return from < version && version <= to }
	switch n.GetOpType() {
	case "Squeeze", "Unsqueeze", "ReduceSum":
		if crosses(13) {
			m.attributeToInput(n, x, "axes", 1)
		}
	case "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp":
		if crosses(18) {
			m.attributeToInput(n, x, "axes", 1)
		}
	case "Split":
		if crosses(13) {
			m.attributeToInput(n, x, "split", 1)
		}
		if crosses(18) && n.In(1) == "" && n.FindAttribute("num_outputs") == nil {
			n.Attribute = append(n.Attribute, Int("num_outputs", int64(len(n.Output))))
		}
	case "Softmax", "LogSoftmax", "Hardmax":
		// Before 13 they treated the tensor as a matrix of the dimensions before the axis and from it on; for the last axis that is the
		// same.
		if crosses(13) {
			at := n.IntOr("axis", 1)
			if rank := m.rankOf(n.In(0)); at != -1 && at != rank-1 {
				return m.refuse(to, "node %q (%s) over axis %d changes its meaning in opset 13", n.GetName(), n.GetOpType(), at)
			}
			n.RemoveAttribute("axis")
			n.Attribute = append(n.Attribute, Int("axis", -1))
		}
	case "Upsample", "Scatter":
		return m.refuse(to, "node %q uses %s, which ONNX removed before opset %d", n.GetName(), n.GetOpType(), to)
	}
	return nil
}

// rankOf returns the rank of a tensor, 0 if it is unknown.
func (m *Model) rankOf(name string) int64 { return int64(len(m.Infer()[name].Shape)) }

func (m *Model) attributeToInput(n *NodeProto, x *Index, attribute string, at int) {
	a := n.FindAttribute(attribute)
	if a == nil {
		return
	}
	name := x.UniqueName(n.Out(0) + "_" + attribute)
	m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, NewInts(name, a.Ints, int64(len(a.Ints))))
	for len(n.Input) < at {
		n.Input = append(n.Input, "")
	}
	n.Input = append(n.Input[:at:at], name)
	n.RemoveAttribute(attribute)
}
