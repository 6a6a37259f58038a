package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutClassify is [B,nc]: a score for each class of the whole image, probabilities or logits.
const LayoutClassify Layout = "classify"

type classify struct {
	labelsAsScored
	activation engine.Activation
}

func (classify) adapt(n *network) head { return classify{activation: n.metadata.Activation} }

func (h classify) describe() Description {
	const networks = "classifiers of Ultralytics, torchvision and others"
	gives := "the best classes of the image"
	if h.activation == engine.Sigmoid {
		gives = "every class of the image that is over the threshold, each for itself"
	}
	return Description{Layout: LayoutClassify, Task: engine.Classify, Form: "[B,nc]", Networks: networks, Gives: gives}
}

func (classify) reads(n *network) [][]int { return n.single() }

func (h classify) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 2 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Classes: int(max(shape[1], 0))}, nil
}

// weigh wants to know that the numbers are classes: an embedding looks the same.
func (classify) weigh(n *network, f *Match) (evidence, doubt string) {
	switch {
	case len(n.outputs) > 1:
		return "", ""
	case n.metadata.Task == engine.Classify:
		return "the file says that it classifies", ""
	case n.labels > 0:
		return fmt.Sprintf("as many numbers as there are labels, %d", n.labels), ""
	}
	return "", "nothing says that its numbers are classes (give their labels with --labels FILE, confirm it with --layout classify, or name " +
		"its --layout embedding)"
}

func (classify) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }
