package predict

import "github.com/edge-infer/edge-infer/engine"

// ImageBuffers is memory for images that are made of others on their way to a predictor, by number. The next request uses it again. The zero
// value holds none.
type ImageBuffers struct{ buffers []*engine.Buffer }

// Bytes is memory of that number and size in bytes, which p reads without another copy. It is valid until the next call for the number.
func (c *ImageBuffers) Bytes(p Predictor, number, size int) ([]byte, error) {
	for len(c.buffers) <= number {
		c.buffers = append(c.buffers, nil)
	}
	if b := c.buffers[number]; b == nil || len(b.Data) < size {
		if b != nil {
			b.Free()
			c.buffers[number] = nil
		}
		b, err := p.Alloc(size)
		if err != nil {
			return nil, err
		}
		c.buffers[number] = b
	}
	return c.buffers[number].Data[:size], nil
}

// Free gives all of it back.
func (c *ImageBuffers) Free() {
	for _, b := range c.buffers {
		if b != nil {
			b.Free()
		}
	}
	c.buffers = nil
}
