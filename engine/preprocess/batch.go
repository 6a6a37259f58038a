package preprocess

import "github.com/edge-infer/edge-infer/engine"

// Batch writes the images of a request into the batch positions of one network input on the CPU, and records the border in each of them.
// The zero value is for a network without image input. It must not be used by two goroutines at once.
type Batch struct {
	letterbox *Letterbox
	drawn     []Geometry // border that lies in each position
}

// NewBatch returns a batch of the given number of positions.
func NewBatch(input *engine.ImageInput, positions int) Batch {
	return Batch{letterbox: NewLetterbox(input), drawn: make([]Geometry, positions)}
}

// Run writes the images into output, which must be the same memory in each call and hold all positions, and appends their transforms. It
// returns the batch size to run. A model with a fixed batch runs all positions; those without an image keep their content.
func (b *Batch) Run(images []engine.Image, output []byte, transforms []engine.Transform) (int, []engine.Transform, error) {
	in := &b.letterbox.input
	size := in.ImageBytes()
	for i := range images {
		g, err := b.letterbox.Run(&images[i], output[i*size:(i+1)*size], b.drawn[i])
		if err != nil {
			return 0, transforms, err
		}
		b.drawn[i] = g
		transforms = append(transforms, g.Transform())
	}
	if in.Batch > 0 {
		return in.Batch, transforms, nil
	}
	return len(images), transforms, nil
}

// Forget must be called after other data was written to the output.
func (b *Batch) Forget() { clear(b.drawn) }
