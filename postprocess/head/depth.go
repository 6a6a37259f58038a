package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutDepth is [B,h,w] or [B,1,h,w]: the depth of every pixel, or its inverse, in a unit of the network's own.
const LayoutDepth Layout = "depth"

type depth struct {
	noBoxMap
	ownNumbers
}

// describe names no preset: Depth Anything and MiDaS use imagenet, DPT uses keras.
func (depth) describe() Description {
	return Description{
		Layout: LayoutDepth, Task: engine.Depth, Form: "[B,h,w] or [B,1,h,w]",
		Networks: "depth of Ultralytics, Depth Anything, MiDaS, DPT and others", Gives: "depth of every place of the image",
		Unspecified: "how the images of " + string(LayoutDepth) + " are scaled, which its networks differ in",
	}
}

func (depth) findOutputs(n *network) [][]int { return n.floats() }

func (h depth) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if rank := len(shape); rank != 3 && (rank != 4 || shape[1] != 1) {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: cellsOf(shape)}, nil
}

// depthNames are the names of outputs with depths.
var depthNames = [...]string{"depth", "predicted_depth", "pred_depth", "metric_depth", "inverse_depth", "disparity"}

// recognise wants a name, metadata or a selected layout: a map of numbers has no form of its own.
func (depth) recognise(n *network, m *match) (evidence, doubt string) {
	o := &n.outputs[m.outputs[0]]
	switch {
	case !n.isImageSized(o.Shape):
		return "", ""
	case hasName(o.Name, depthNames[:]...):
		return "the output's name stands for depth", ""
	case len(n.outputs) > 1:
		return "", ""
	case n.metadata.Task == engine.Depth:
		return "the file specifies depth", ""
	case n.labels == 0:
		return "", "no task in the file: are its numbers depths? (confirm it with --layout depth)"
	}
	return "", ""
}

func (depth) newDecoder(*settings) decoder { return &depthDecoder{} }

type depthDecoder struct {
	results perImage[depthResult]
}

type depthResult struct {
	dense  postprocess.DenseMap
	depths []float32
}

func (d *depthDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if in.scoresOnly {
		return dst, nil
	}
	result, data := d.results.at(in.index), in.tensors[0].data
	result.dense = postprocess.DenseMap{}
	grid := in.gridSize()
	if len(data) != grid.X*grid.Y {
		return dst, in.mismatch()
	}
	m, cropped := in.cropMap(grid)
	m.Depths = resize(&result.depths, m.Width*m.Height)
	for row := range m.Height {
		at := (cropped.Min.Y+row)*grid.X + cropped.Min.X
		copy(m.Depths[row*m.Width:(row+1)*m.Width], data[at:])
	}
	result.dense = m
	return dst, nil
}

func (d *depthDecoder) denseMap(index int) *postprocess.DenseMap {
	if index >= len(d.results) || d.results[index].dense.Width == 0 {
		return nil
	}
	return &d.results[index].dense
}
