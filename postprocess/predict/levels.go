package predict

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// joined is the name of the output that join adds.
const joined = head.Levels

// level is one scale of a NanoDet or PicoDet that was exported without joining its scales: scores [B,n,nc] and distances [B,n,32], or
// without B.
type level struct {
	cells             int64
	scores, distances *engine.TensorInfo
}

// levels returns the scales of such a network, finest first; nil for other outputs. A scale has as many rows as cells, rounded up as such
// networks do, and the scores of all have as many columns.
func levels(outputs []engine.TensorInfo, width, height int) []level {
	var all []level
	classes := int64(0)
	for stride := 8; 2*len(all) < len(outputs); stride *= 2 {
		l := level{cells: int64((width + stride - 1) / stride * ((height + stride - 1) / stride))}
		for i := range outputs {
			o := &outputs[i]
			rank := len(o.Shape)
			switch {
			case rank < 2 || rank > 3 || rank != len(outputs[0].Shape) || o.Type != engine.Float32 || o.Shape[rank-2] != l.cells:
			case o.Shape[rank-1] == head.BoxLogits && l.distances == nil:
				l.distances = o
			case l.scores == nil:
				l.scores = o
			default:
				return nil
			}
		}
		if l.scores == nil || l.distances == nil {
			return nil
		}
		columns := l.scores.Shape[len(l.scores.Shape)-1]
		if columns < 1 || classes != 0 && classes != columns {
			return nil
		}
		classes = columns
		all = append(all, l)
	}
	if len(all) < 3 || len(all) > 4 || 2*len(all) != len(outputs) {
		return nil
	}
	return all
}

// join adds one output [B,N,nc+32] of all levels to the graph, as other exports of such networks have it.
func join(g *onnx.GraphProto, all []level) {
	var rows []string
	shape := slices.Clone(all[0].scores.Shape)
	rank := len(shape)
	node := func(operator, name string, inputs []string, attributes ...*onnx.AttributeProto) string {
		g.Node = append(g.Node, onnx.NewNode(operator, name, inputs, []string{name}, attributes...))
		return name
	}
	count := int64(0)
	for i, l := range all {
		count += l.cells
		name := fmt.Sprintf("%s/%d", joined, i)
		rows = append(rows, node("Concat", name, []string{l.scores.Name, l.distances.Name}, onnx.Int("axis", int64(rank-1))))
	}
	shape[rank-2], shape[rank-1] = count, shape[rank-1]+head.BoxLogits
	last := joined
	if rank == 2 {
		last += "/rows"
	}
	node("Concat", last, rows, onnx.Int("axis", int64(rank-2)))
	if rank == 2 {
		shape = append([]int64{1}, shape...)
		g.Initializer = append(g.Initializer, onnx.NewInts(joined+"/shape", shape, 3))
		node("Reshape", joined, []string{last, joined + "/shape"})
	}
	g.Output = []*onnx.ValueInfoProto{onnx.NewValueInfo(joined, onnx.TensorProto_FLOAT, shape)}
}
