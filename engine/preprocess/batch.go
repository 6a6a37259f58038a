package preprocess

import "github.com/edge-infer/edge-infer/engine"

// Batch writes the images of a request into the batch positions of one network input on the CPU, and remembers the border that lies in
// each of them. The zero value is of a network that takes no images. It belongs to one goroutine at a time.
type Batch struct {
	letterbox *Letterbox
	drawn     []Geometry // border that lies in each position
}

// NewBatch returns a batch of at most that many positions.
func NewBatch(input *engine.ImageInput, most int) Batch {
	return Batch{letterbox: NewLetterbox(input), drawn: make([]Geometry, most)}
}

// Run writes the images into output, which is the same memory each time and holds every position, and appends where each of them was put
// to transforms. It gives the size of the batch that the network runs: a model with a fixed one runs whole, and positions without an image
// keep what they held.
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

// Forget says that something else was written to the output.
func (b *Batch) Forget() { clear(b.drawn) }
