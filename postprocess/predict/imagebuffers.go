package predict

import "github.com/edge-infer/edge-infer/engine"

// ImageBuffers is memory for images that are derived from others before a predictor reads them, by number. Requests reuse it. The zero
// value is empty.
type ImageBuffers struct{ buffers []*engine.Buffer }

// Bytes returns so many bytes of memory with that number, which p reads without another copy. It is valid until the next call for the
// number.
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

// Free frees all memory.
func (c *ImageBuffers) Free() {
	for _, b := range c.buffers {
		if b != nil {
			b.Free()
		}
	}
	c.buffers = nil
}
