package head

import (
	"fmt"
	"image"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutSemantic is [B,nc,h,w], scores of each class for every pixel, of which the highest decides, or the class numbers themselves in
// networks that end with an ArgMax: [B,h,w] or [B,1,h,w].
const LayoutSemantic Layout = "semantic"

type semantic struct{ noBoxMap }

func (semantic) describe() Description {
	return Description{
		Layout: LayoutSemantic, Task: engine.Semantic, Form: "[B,nc,h,w], or [B,h,w] of class numbers",
		Networks: "semantic segmentation of Ultralytics, torchvision (DeepLab, LR-ASPP, FCN), SegFormer and others",
		Gives:    "class of every place of the image", Preset: "imagenet",
	}
}

// findOutputs lists the maps of scores and those of class numbers one by one.
func (semantic) findOutputs(n *network) (all [][]int) {
	for i := range n.outputs {
		o := &n.outputs[i]
		if n.hasClassNumbers(i) || len(o.Shape) == 4 && (o.Type == engine.Float32 || o.Type == engine.Float16) {
			all = append(all, []int{i})
		}
	}
	return all
}

// hasClassNumbers reports whether an output holds a class number for every pixel.
func (n *network) hasClassNumbers(output int) bool {
	o := &n.outputs[output]
	rank := len(o.Shape)
	return (n.isInteger(output) || o.Type == engine.Uint8) && (rank == 3 || rank == 4 && o.Shape[1] == 1)
}

// measure leaves the number of classes open for class numbers.
func (h semantic) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	rank := len(shape)
	switch {
	case rank == 3 || rank == 4 && shape[1] == 1:
		return sizes{boxes: cellsOf(shape)}, nil
	case rank == 4 && shape[1] >= 2 && shape[1] <= postprocess.NoClass:
		return sizes{boxes: cellsOf(shape), classes: int(shape[1])}, nil
	}
	return sizes{}, mismatch(h, shapes)
}

// recognise requires evidence that the numbers are class scores: heat maps of keypoints have the same form.
func (semantic) recognise(n *network, m *match) (evidence, doubt string) {
	o := &n.outputs[m.outputs[0]]
	specified := n.metadata.Task == engine.Semantic
	if !specified && !n.isImageSized(o.Shape) {
		return "", ""
	}
	if n.hasClassNumbers(m.outputs[0]) {
		if len(n.outputs) > 1 && !specified {
			return "", ""
		}
		return "a class number for every place of the image", ""
	}
	if m.classes < 2 {
		return "", ""
	}
	if len(n.outputs) > 1 { // torchvision has a second map of the same classes for training
		if !n.hasAuxiliary(m.outputs[0]) || hasName(o.Name, "aux") {
			return "", ""
		}
		return "two maps of as many classes, out and aux, as torchvision's segmentation has them", ""
	}
	_, fits := n.numbering(m.classes, 0, true)
	switch {
	case !specified && slices.Contains(n.metadata.Labels, "nose"):
		return "", "its labels are keypoints: the heat maps of poses are not decoded"
	case specified:
		return "the file specifies semantic segmentation", ""
	case n.labels > 0 && fits && n.isWholeSized(o.Shape):
		return fmt.Sprintf("a map of scores for each of %s", plural(n.labels, "label")), ""
	case hasName(o.Name, "logits"):
		return "logits for every place of the image, as Hugging Face's segmentation names them", ""
	}
	return "", fmt.Sprintf("no task in the file: are its %d maps scores of classes or heat maps? (confirm it with --layout semantic)",
		m.classes)
}

// hasAuxiliary reports whether an output is one of torchvision's pair out and aux.
func (n *network) hasAuxiliary(output int) bool {
	if len(n.outputs) != 2 {
		return false
	}
	one, other := &n.outputs[output], &n.outputs[1-output]
	pair := hasName(one.Name, "out") && hasName(other.Name, "aux") || hasName(one.Name, "aux") && hasName(other.Name, "out")
	return pair && len(other.Shape) == 4 && one.Shape[1] == other.Shape[1]
}

// numbering allows class 0 to be a background without a label. A network with one label has class number 1 where it is and 0 where it is
// not.
func (h semantic) numbering(n *network, m *match) (numbering, bool) {
	if m.classes > 0 {
		return n.numbering(m.classes, 0, true)
	}
	if n.labels == 1 {
		return numbering{first: -1}, true
	}
	return numbering{}, true
}

func (semantic) newDecoder(s *settings) decoder {
	d := &semanticDecoder{settings: s, numbers: postprocess.NoClass, asLabels: true}
	if s.classes > 0 {
		d.numbers = s.classes - min(s.match.numbers.class(0), 0)
	}
	for number := range d.labels {
		class := s.match.numbers.class(number)
		if class < 0 || number == postprocess.NoClass || s.classes > 0 && (class >= s.classes || s.minScores[class] > 1) {
			class = postprocess.NoClass
		}
		d.labels[number] = uint8(class)
		possible := s.columns > 0 && number < s.columns || s.columns == 0 && number < d.numbers
		d.asLabels = d.asLabels && (class == number || !possible)
	}
	return d
}

type semanticDecoder struct {
	*settings
	numbers  int                            // the network's class numbers are below
	labels   [postprocess.NoClass + 1]uint8 // class of a number
	asLabels bool                           // labels changes no number that a map can hold
	results  perImage[semanticResult]
}

type semanticResult struct {
	dense   postprocess.DenseMap
	classes []uint8
}

// decode sets the map to the class with the highest score of every cell, or to the class numbers of the network.
func (d *semanticDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if in.scoresOnly { // any score is possible
		return dst, nil
	}
	result, from := d.results.at(in.index), &in.tensors[0]
	result.dense = postprocess.DenseMap{}
	grid := in.gridSize()
	cells := resize(&result.classes, grid.X*grid.Y)
	unknown := 0
	switch from.kind {
	case engine.Uint8:
		unknown = scan.ClassNumbers(cells, from.raw, d.numbers)
	case engine.Int32:
		unknown = scan.ClassNumbers(cells, view[int32](from.raw), d.numbers)
	case engine.Int64:
		unknown = scan.ClassNumbers(cells, view[int64](from.raw), d.numbers)
	default:
		if len(from.data) != in.match.classes*len(cells) {
			return dst, in.mismatch()
		}
		unknown = scan.ArgmaxPlanes(cells, from.data, in.match.classes)
		in.stats.HeatMaps, in.stats.ScoreMaps = judgeMaps(from.data, in.match.classes)
	}
	m, cropped := in.cropMap(grid)
	m.Classes = crop(cells, grid, cropped)
	if !d.asLabels {
		unknown = d.relabel(m.Classes)
	}
	in.stats.UnknownPixels = unknown
	result.dense = m
	return dst, nil
}

// judgeMaps looks at some places of maps [classes,h,w]. heat is 1 if the values are nearly 0 in most places, with peaks: the highest class
// of such places is noise. scores is 1 if they are not, and both are 0 for maps of zeros.
func judgeMaps(data []float32, classes int) (heat, scores int) {
	const (
		places        = 4096
		nothing, peak = 0.15, 0.3
		least, most   = -0.5, 2
	)
	cells := len(data) / classes
	step := max(cells/places, 1) | 1 // odd, so that all columns are met
	seen, empty, peaks := 0, 0, 0
	for at := 0; at < cells; at += step {
		low, high := data[at], data[at]
		for class := 1; class < classes; class++ {
			low, high = min(low, data[class*cells+at]), max(high, data[class*cells+at])
		}
		if !(low >= least && high <= most) {
			return 0, 1
		}
		seen++
		switch {
		case low >= -nothing && high <= nothing:
			empty++
		case high >= peak:
			peaks++
		}
	}
	switch {
	case empty == seen:
		return 0, 0
	case peaks > 0 && empty*10 >= seen*6:
		return 1, 0
	}
	return 0, 1
}

// relabel replaces the network's class numbers by those of the labels, and returns how many cells have none.
func (d *semanticDecoder) relabel(cells []uint8) (unknown int) {
	for i, number := range cells {
		number = d.labels[number]
		if number == postprocess.NoClass {
			unknown++
		}
		cells[i] = number
	}
	return unknown
}

// crop moves the cells of a part of a grid to its beginning, row after row.
func crop(cells []uint8, grid image.Point, part image.Rectangle) []uint8 {
	width := part.Dx()
	if width == grid.X {
		return cells[part.Min.Y*width : part.Max.Y*width]
	}
	for row := range part.Dy() {
		at := (part.Min.Y+row)*grid.X + part.Min.X
		copy(cells[row*width:(row+1)*width], cells[at:at+width])
	}
	return cells[:width*part.Dy()]
}

func (d *semanticDecoder) denseMap(index int) *postprocess.DenseMap {
	if index >= len(d.results) || d.results[index].dense.Width == 0 {
		return nil
	}
	return &d.results[index].dense
}
