package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutSemantic is [B,nc,h,w], scores of each class for every place of the image of which the highest says what is there, or what is
// left of them in networks that end so: [B,h,w] or [B,1,h,w], a class number for every place.
const LayoutSemantic Layout = "semantic"

type semantic struct{ network *network }

func (semantic) adapt(n *network) head { return semantic{n} }

func (semantic) describe() Description {
	return Description{
		Layout: LayoutSemantic, Task: engine.Semantic, Form: "[B,nc,h,w], or [B,h,w] of class numbers",
		Networks: "semantic segmentation of Ultralytics, torchvision (DeepLab, LR-ASPP, FCN), SegFormer and others",
		Gives:    "class of every place of the image", Preset: "imagenet",
	}
}

// reads lists the maps of scores and those of class numbers one by one.
func (semantic) reads(n *network) (all [][]int) {
	for i := range n.outputs {
		switch o := &n.outputs[i]; {
		case n.numbered(i):
			all = append(all, []int{i})
		case len(o.Shape) == 4 && (o.Type == engine.Float32 || o.Type == engine.Float16):
			all = append(all, []int{i})
		}
	}
	return all
}

// numbered reports whether an output holds a class number for every place.
func (n *network) numbered(output int) bool {
	o := &n.outputs[output]
	rank := len(o.Shape)
	return (n.integer(output) || o.Type == engine.Uint8) && (rank == 3 || rank == 4 && o.Shape[1] == 1)
}

// measure leaves the classes open where they come by number.
func (h semantic) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	rank := len(shape)
	switch {
	case rank == 3 || rank == 4 && shape[1] == 1:
		return Sizes{Boxes: cellsOf(shape)}, nil
	case rank == 4 && shape[1] >= 2 && shape[1] <= postprocess.NoClass:
		return Sizes{Boxes: cellsOf(shape), Classes: int(shape[1])}, nil
	}
	return Sizes{}, misfit(h, shapes)
}

// cellsOf is how many places the last two dimensions have, -1 while one of them is open.
func cellsOf(shape []int64) int64 {
	height, width := shape[len(shape)-2], shape[len(shape)-1]
	if height < 0 || width < 0 {
		return -1
	}
	return height * width
}

// coarsest is the stride from which on a map is too coarse to be one of places: heads of detectors look like that.
const coarsest = 16

// places reports whether the last two dimensions are those of an image at a scale that such maps have, or open. Sizes that a stride does
// not divide are rounded up or down.
func (n *network) places(shape []int64) bool {
	height, width := shape[len(shape)-2], shape[len(shape)-1]
	for stride := int64(1); stride <= coarsest; stride *= 2 {
		fits := func(size int64, side int) bool {
			return size < 0 || size == int64(side)/stride || size == (int64(side)+stride-1)/stride
		}
		if fits(height, n.height) && fits(width, n.width) {
			return true
		}
	}
	return false
}

// weigh wants to know that the numbers are scores of classes: heat maps of keypoints look the same.
func (semantic) weigh(n *network, f *Match) (evidence, doubt string) {
	said, o := n.metadata.Task == engine.Semantic, &n.outputs[f.Outputs[0]]
	if !said && !n.places(o.Shape) {
		return "", ""
	}
	if n.numbered(f.Outputs[0]) {
		if len(n.outputs) > 1 && !said {
			return "", ""
		}
		return "a class number for every place of the image", ""
	}
	if f.Classes < 2 {
		return "", ""
	}
	if beside := n.beside(f.Outputs[0]); beside == "aux" { // of training, for the same classes
		if called(o.Name, "aux") {
			return "", ""
		}
		return "two maps of as many classes, out and aux, as torchvision's segmentation has them", ""
	} else if beside != "" {
		return "", ""
	}
	_, fits := n.number(f.Classes, 0, true)
	switch {
	case said:
		return "the file says that it segments by class", ""
	case n.labels > 0 && fits:
		return fmt.Sprintf("a map of scores for each of %s", Plural(n.labels, "label")), ""
	case called(o.Name, "logits"):
		return "logits for every place of the image, as Hugging Face's segmentation names them", ""
	}
	return "", fmt.Sprintf("nothing says that its %d maps are scores of classes: heat maps would look the same (give the labels with "+
		"--labels FILE, or confirm it with --layout semantic)", f.Classes)
}

// beside is what stands beside a map of scores: nothing, "aux" where it is torchvision's pair, or the names of others.
func (n *network) beside(output int) string {
	switch len(n.outputs) {
	case 1:
		return ""
	case 2:
		one, other := &n.outputs[output], &n.outputs[1-output]
		pair := called(one.Name, "out") && called(other.Name, "aux") || called(one.Name, "aux") && called(other.Name, "out")
		if pair && len(other.Shape) == 4 && one.Shape[1] == other.Shape[1] {
			return "aux"
		}
	}
	return n.String()
}

func (semantic) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

// number lets class 0 be a background that has no label. The numbers of a network with one label are 1 where it is and 0 where it is not.
func (h semantic) number(n *network, f *Match) (Numbering, bool) {
	if f.Classes > 0 {
		return n.number(f.Classes, 0, true)
	}
	if n.labels == 1 {
		return Numbering{first: -1}, true
	}
	return Numbering{}, true
}
