package head

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutEmbedding is [B,D]: a vector of each image. Images of the same object have vectors with a high cosine similarity.
const LayoutEmbedding Layout = "embedding"

// maxEmbedding bounds the length of the vector.
const maxEmbedding = 4096

type embedding struct {
	noBoxMap
	ownNumbers
}

func (embedding) describe() Description {
	return Description{
		Layout: LayoutEmbedding, Task: engine.Embed, Form: "[B,D], D from 2 to 4096",
		Networks:    "networks for re-identification: OSNet, FastReID, TAO ReIdentificationNet and others",
		Gives:       "a vector by which objects are known again",
		Unspecified: "how the images of a network that embeds are scaled",
	}
}

func (embedding) findOutputs(n *network) [][]int { return n.floats() }

// measure accepts dimensions of 1 after the vector, which networks without a last Flatten have.
func (h embedding) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	broad := func(side int64) bool { return side != 1 }
	if len(shape) < 2 || shape[1] == 1 || shape[1] > maxEmbedding || slices.ContainsFunc(shape[2:], broad) {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{}, nil
}

// recognise needs the task in the file's metadata, because a classifier has the same form.
func (embedding) recognise(n *network, _ *match) (evidence, doubt string) {
	if n.metadata.Task == engine.Embed {
		return "the file specifies an embedding", ""
	}
	return "", ""
}

func (embedding) newDecoder(*settings) decoder { return &embeddingDecoder{} }

type embeddingDecoder struct {
	results perImage[embeddingResult]
}

type embeddingResult struct {
	detail postprocess.Detail
	vector []float32
}

// decode returns the vector of the image, scaled to a length of 1, as one detection of the whole image. A vector with numbers that are not
// finite is counted and yields nothing, nor does one of length 0.
func (d *embeddingDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	numbers := in.tensors[0].data
	length := 0.0
	for _, v := range numbers {
		length += float64(v) * float64(v)
	}
	length = math.Sqrt(length)
	switch {
	case length == 0:
		return dst, nil
	case math.IsNaN(length) || math.IsInf(length, 0) || len(numbers) > maxEmbedding:
		in.stats.Invalid++
		in.stats.BadScores++
		return dst, nil
	}
	in.stats.Candidates++
	found := postprocess.Detection{Box: in.wholeImage(), Score: 1}
	if !in.scoresOnly {
		result := d.results.at(in.index)
		vector := resize(&result.vector, len(numbers))
		for i, v := range numbers {
			vector[i] = float32(float64(v) / length)
		}
		result.detail = postprocess.Detail{Embedding: vector}
		found.Detail = &result.detail
	}
	if len(dst) == cap(dst) {
		dst = slices.Grow(dst, 1)
	}
	return append(dst, found), nil
}
