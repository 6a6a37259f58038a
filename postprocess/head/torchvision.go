package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutTorchvision is [K,4], [K] and [K]: the corners x1, y1, x2, y2 in input pixels, scores and class numbers, 0 being background, of a
// single image.
const LayoutTorchvision Layout = "torchvision"

type torchvision struct{ noBoxMap }

func (torchvision) describe() Description {
	return Description{
		Layout: LayoutTorchvision, Task: engine.Detect, Form: "[K,4], [K] and, as integers, [K]",
		Networks: "Faster R-CNN, RetinaNet, FCOS and SSD of torchvision",
		Gives:    boxesWithClasses, NMSFree: true, Unbatched: true,
	}
}

// findOutputs uses shapes and types, because exports seldom name their outputs.
func (torchvision) findOutputs(n *network) [][]int {
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

func (h torchvision) measure(shapes [][]int64) (sizes, error) { return measureSelected(h, shapes, 0) }

func (torchvision) numbering(n *network, _ *match) (numbering, bool) { return n.fromOne(), true }

func (torchvision) recognise(n *network, _ *match) (evidence, doubt string) {
	if len(n.outputs) > 3 {
		return "", "there are further outputs (--layout torchvision reads the boxes anyway)"
	}
	return "boxes, scores and class numbers of one image, as many as there are objects", ""
}

func (torchvision) newDecoder(s *settings) decoder { return newSelectedDecoder(s, coordinates{}) }
