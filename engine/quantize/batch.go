package quantize

import "github.com/edge-infer/edge-infer/engine"

// batch collects images until size of them can run at once. It copies them, because an image is valid only until the next one is loaded.
type batch struct {
	size   int // 0 and 1: one image per run
	images []engine.Image
}

// add runs the batch if the sample fills it; otherwise the result is nil. Samples of tensors run alone.
func (b *batch) add(r Runner, s Sample) (*engine.Result, error) {
	if b.size <= 1 || len(s.Tensors) > 0 {
		return run(r, s)
	}
	n := len(b.images)
	if n < cap(b.images) {
		b.images = b.images[:n+1]
	} else {
		b.images = append(b.images, engine.Image{})
	}
	kept := append(b.images[n].Data[:0], s.Image.Data...)
	b.images[n] = s.Image
	b.images[n].Data = kept
	if len(b.images) < b.size {
		return nil, nil
	}
	return b.rest(r)
}

// rest runs the remaining images; the result is nil if there are none.
func (b *batch) rest(r Runner) (*engine.Result, error) {
	if len(b.images) == 0 {
		return nil, nil
	}
	waiting := b.images
	b.images = b.images[:0]
	return r.Images(waiting...)
}
