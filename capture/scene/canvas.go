package scene

// Part is the ground truth of one part on an image.
type Part struct {
	// ID is constant while the part is on the belt and never reused.
	ID    int64
	Class Class
	// X0, Y0 and X1, Y1 bound the part's visible pixels: left and top edge inclusive, right and bottom edge exclusive. A pixel belongs to
	// the part that covers at least half of it and is on top.
	X0, Y0, X1, Y1 int
	// Visible is the visible share of the part's pixels: less than 1 for a part below another one or cut by the image's edge.
	Visible float64
}

// placed is a sprite on the image.
type placed struct {
	sprite *sprite
	x, y   int // top left corner, may be outside
	id     int64
	class  Class // classes for a distractor
}

// canvas composes sprites on an image and records which one is on top at every pixel.
type canvas struct {
	width, height int
	owner         []uint16 // topmost item at each pixel: index in items plus one, 0 for none
	items         []placed
}

func newCanvas(width, height int) canvas {
	return canvas{width: width, height: height, owner: make([]uint16, width*height), items: make([]placed, 0, 256)}
}

func (c *canvas) reset() {
	clear(c.owner)
	c.items = c.items[:0]
}

// lay blends a sprite over the image. Sprites beyond the range of owner are dropped.
func (c *canvas) lay(dst []byte, stride int, p placed) {
	s := p.sprite
	x0, x1 := max(0, -p.x), min(s.width, c.width-p.x)
	y0, y1 := max(0, -p.y), min(s.height, c.height-p.y)
	if x0 >= x1 || y0 >= y1 || len(c.items) == 1<<16-2 {
		return
	}
	c.items = append(c.items, p)
	number := uint16(len(c.items))
	for y := y0; y < y1; y++ {
		from := s.pixels[4*(y*s.width+x0) : 4*(y*s.width+x1)]
		mask := s.mask[y*s.width+x0 : y*s.width+x1]
		to := dst[(p.y+y)*stride+3*(p.x+x0):][:3*len(mask)]
		owner := c.owner[(p.y+y)*c.width+p.x+x0:][:len(mask)]
		for i := range mask {
			q := from[4*i:][:4:4]
			if q[3] == 0 {
				continue
			}
			keep := 255 - uint32(q[3])
			d := to[3*i:][:3:3]
			// (v*257+32896)>>16 is v/255 rounded, exact up to 255*255.
			d[0] = byte(min(255, uint32(q[0])+(uint32(d[0])*keep*257+32896)>>16))
			d[1] = byte(min(255, uint32(q[1])+(uint32(d[1])*keep*257+32896)>>16))
			d[2] = byte(min(255, uint32(q[2])+(uint32(d[2])*keep*257+32896)>>16))
			if mask[i] {
				owner[i] = number
			}
		}
	}
}

// truth appends the ground truth of every visible part.
func (c *canvas) truth(parts []Part) []Part {
	for n := range c.items {
		p := &c.items[n]
		if p.class == classes {
			continue
		}
		x0, x1 := max(0, p.x), min(c.width, p.x+p.sprite.width)
		seen, part := 0, Part{ID: p.id, Class: p.class, X0: x1, Y0: c.height, X1: x0}
		for y := max(0, p.y); y < min(c.height, p.y+p.sprite.height); y++ {
			owner := c.owner[y*c.width:][:c.width]
			first, last := -1, -1
			for x := x0; x < x1; x++ {
				if owner[x] == uint16(n+1) {
					if first < 0 {
						first = x
					}
					last = x
					seen++
				}
			}
			if first >= 0 {
				part.X0, part.X1 = min(part.X0, first), max(part.X1, last+1)
				part.Y0, part.Y1 = min(part.Y0, y), y+1
			}
		}
		if seen > 0 {
			part.Visible = float64(seen) / float64(p.sprite.area)
			parts = append(parts, part)
		}
	}
	return parts
}
