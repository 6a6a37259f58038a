package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutTorchvision is [K,4], [K] and [K]: the corners x1, y1, x2, y2 in input pixels, scores and class numbers, 0 being background, of the
// one image that it takes at a time.
const LayoutTorchvision Layout = "torchvision"

type torchvision struct{}

func (torchvision) describe() Description {
	return Description{
		Layout: LayoutTorchvision, Task: engine.Detect, Form: "[K,4], [K] and [K]",
		Networks: "Faster R-CNN, RetinaNet, FCOS and SSD of torchvision",
		Gives:    boxesWithClasses, NMSFree: true, Unbatched: true,
	}
}

// reads goes by what the outputs are: exports seldom name them.
func (torchvision) reads(n *network) [][]int {
	find := func(rank int, integer bool) int {
		return slices.IndexFunc(n.outputs, func(o engine.TensorInfo) bool {
			return len(o.Shape) == rank && (o.Type == engine.Int64 || o.Type == engine.Int32) == integer
		})
	}
	all := []int{find(2, false), find(1, false), find(1, true)}
	if slices.Contains(all, -1) {
		return nil
	}
	return [][]int{all}
}

func (h torchvision) measure(shapes [][]int64) (Sizes, error) { return measureChosen(h, shapes, 0) }

func (torchvision) number(n *network, _ *Match) (Numbering, bool) { return n.fromOne(), true }

func (torchvision) weigh(n *network, _ *Match) (evidence, doubt string) {
	if len(n.outputs) > 3 {
		return "", "there are other outputs beside it: " + n.String() + " (--layout torchvision reads the boxes all the same)"
	}
	return "boxes, scores and class numbers of one image, as many as there are objects", ""
}

func (torchvision) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }
