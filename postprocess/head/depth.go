package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutDepth is [B,h,w] or [B,1,h,w]: how far every place of the image is, or how near, in a unit of the network's own.
const LayoutDepth Layout = "depth"

type depth struct{}

func (depth) describe() Description {
	return Description{
		Layout: LayoutDepth, Task: engine.Depth, Form: "[B,h,w] or [B,1,h,w]",
		Networks: "depth of Ultralytics, Depth Anything, MiDaS, DPT and others", Gives: "depth of every place of the image",
	}
}

func (depth) reads(n *network) [][]int { return n.single() }

func (h depth) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if rank := len(shape); rank != 3 && (rank != 4 || shape[1] != 1) {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: cellsOf(shape)}, nil
}

// depthNames are what networks call their depths.
var depthNames = [...]string{"depth", "predicted_depth", "pred_depth", "metric_depth", "inverse_depth", "disparity"}

// weigh wants somebody to say that it is depth: a map of numbers looks like nothing in particular.
func (depth) weigh(n *network, f *Match) (evidence, doubt string) {
	o := &n.outputs[f.Outputs[0]]
	switch {
	case !n.places(o.Shape):
		return "", ""
	case called(o.Name, depthNames[:]...):
		return "its name says that it is depth", ""
	case len(n.outputs) > 1:
		return "", ""
	case n.metadata.Task == engine.Depth:
		return "the file says that it is depth", ""
	case n.labels == 0:
		return "", "nothing says what its numbers are (confirm it with --layout depth)"
	}
	return "", ""
}

func (depth) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

// number has nothing to number.
func (depth) number(*network, *Match) (Numbering, bool) { return Numbering{}, true }
