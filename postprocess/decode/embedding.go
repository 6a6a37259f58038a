package decode

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// embed gives the vector of the image, scaled to a length of 1, as one detection of all of it. Numbers that are none give
// nothing and are counted, and a vector without a direction gives nothing.
func (d *Decoder) embed(dst []postprocess.Detection) []postprocess.Detection {
	numbers := d.parts[0].data
	length := 0.0
	for _, v := range numbers {
		length += float64(v) * float64(v)
	}
	length = math.Sqrt(length)
	switch {
	case length == 0:
		return dst
	case math.IsNaN(length) || math.IsInf(length, 0) || len(numbers) > head.MaxEmbedding:
		d.img.stats.Invalid++
		d.img.stats.BadScores++
		return dst
	}
	d.img.stats.Candidates++
	found := postprocess.Detection{
		Box: postprocess.Box{X2: float32(d.img.width), Y2: float32(d.img.height)}, Score: 1,
	}
	if memory := d.img.details; memory != nil {
		vector := room(&memory.logits, len(numbers))
		for i, v := range numbers {
			vector[i] = float32(float64(v) / length)
		}
		detail := &room(&memory.all, 1)[0]
		*detail = postprocess.Detail{Embedding: vector}
		found.Detail = detail
	}
	if len(dst) == cap(dst) {
		dst = slices.Grow(dst, 1)
	}
	return append(dst, found)
}
