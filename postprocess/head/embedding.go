package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutEmbedding is [B,D]: a vector of each image. Images of one object have vectors that point the same way.
const LayoutEmbedding Layout = "embedding"

// MaxEmbedding bounds the vector of an embedding.
const MaxEmbedding = 4096

type embedding struct{}

func (embedding) describe() Description {
	return Description{
		Layout: LayoutEmbedding, Task: engine.Embed, Form: "[B,D], D from 2 to 4096",
		Networks: "networks for re-identification: OSNet, FastReID, TAO ReIdentificationNet and others",
		Gives:    "a vector by which objects are known again",
	}
}

func (embedding) reads(n *network) [][]int { return n.single() }

// measure takes sides of 1 behind the vector, which networks without a last Flatten have.
func (h embedding) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	broad := func(side int64) bool { return side != 1 }
	if len(shape) < 2 || shape[1] == 1 || shape[1] > MaxEmbedding || slices.ContainsFunc(shape[2:], broad) {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{}, nil
}

// weigh goes by what the file says of itself: a classifier has the same form.
func (embedding) weigh(n *network, _ *Match) (evidence, doubt string) {
	if n.metadata.Task == engine.Embed {
		return "the file says that it embeds", ""
	}
	return "", ""
}

func (embedding) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

// number has no classes that labels could be of.
func (embedding) number(*network, *Match) (Numbering, bool) { return Numbering{}, true }
