package motion

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
)

// Affine maps a point of one image to the next: x' = A*x + B*y + C, y' = D*x + E*y + F, in source pixels.
type Affine struct{ A, B, C, D, E, F float64 }

// Box is a rectangle in source pixels.
type Box struct{ X1, Y1, X2, Y2 float32 }

// Estimator estimates camera motion between consecutive images. It tracks corners of thumbnails by the pyramidal method of Lucas and Kanade
// (Bouguet, 2000) and fits an affine map that is robust against outliers. The zero value is ready; one goroutine may use it. It allocates
// when the image size or format changes.
type Estimator struct {
	reducer           Reducer
	current, previous pyramid
	corners           []corner
	hasPrevious       bool
}

const (
	longestSide   = 240 // longer side of the thumbnail in pixels
	levels        = 3
	radius        = 3  // of the window around a corner
	cell          = 20 // side of the square that holds at most one corner
	margin        = radius + 2
	minEigenvalue = 3.0  // minimum eigenvalue of a corner's gradients, squared grey values per pixel
	minCorners    = 8    // minimum number of corners for a fit
	minAgreement  = 0.35 // minimum share of corners that agree with the fit
	maxIterations = 8    // iterations of Lucas and Kanade per level
)

// level is one image of a pyramid.
type level struct {
	pix           []float32
	width, height int
}

// pyramid halves the sides from level to level.
type pyramid [levels]level

// corner is a point of the previous image and its position in the current one, in thumbnail pixels.
type corner struct{ x, y, toX, toY, weight, off float64 }

// Estimate returns the map from the previous image to this one. It ignores the boxes of moving objects in the previous image. It returns
// false for the first image, and if too few corners are found or agree.
func (c *Estimator) Estimate(image *engine.Image, moving []Box) (Affine, bool) {
	c.reducer.LongestSide = longestSide
	small, err := c.reducer.Reduce(image)
	if err != nil {
		c.hasPrevious = false
		return Affine{}, false
	}
	c.current, c.previous = c.previous, c.current
	c.current.fill(small)
	same := c.hasPrevious && c.current[0].width == c.previous[0].width && c.current[0].height == c.previous[0].height
	c.hasPrevious = true
	if !same || c.current[levels-1].width <= 2*margin || c.current[levels-1].height <= 2*margin {
		return Affine{}, false
	}
	c.find(small, moving)
	kept := c.corners[:0]
	for _, k := range c.corners {
		if c.follow(&k) {
			kept = append(kept, k)
		}
	}
	c.corners = kept
	m, ok := fit(c.corners)
	if !ok {
		return Affine{}, false
	}
	// From the centres of thumbnail pixels to source pixels.
	sx, sy := small.ScaleX, small.ScaleY
	m.B, m.D = m.B*sx/sy, m.D*sy/sx
	m.C = (m.C+0.5)*sx - m.A*0.5*sx - m.B*0.5*sy
	m.F = (m.F+0.5)*sy - m.D*0.5*sx - m.E*0.5*sy
	return m, true
}

// Reset forgets the previous image.
func (c *Estimator) Reset() { c.hasPrevious = false }

func (p *pyramid) fill(small *Thumbnail) {
	p[0].size(small.Width, small.Height)
	for i, v := range small.Pix {
		p[0].pix[i] = float32(v)
	}
	for i := 1; i < levels; i++ {
		above, l := &p[i-1], &p[i]
		l.size(above.width/2, above.height/2)
		for y := range l.height {
			one, two := above.pix[2*y*above.width:], above.pix[(2*y+1)*above.width:]
			for x := range l.width {
				l.pix[y*l.width+x] = (one[2*x] + one[2*x+1] + two[2*x] + two[2*x+1]) / 4
			}
		}
	}
}

func (l *level) size(width, height int) {
	if l.width != width || l.height != height {
		l.pix, l.width, l.height = make([]float32, width*height), width, height
	}
}

// sample interpolates the square of pixels around a position, row by row. All of it must be in the image.
func (l *level) sample(x, y float64, reach int, to []float32) {
	i, j := int(x), int(y)
	a, b := float32(x-float64(i)), float32(y-float64(j))
	w00, w01 := (1-a)*(1-b), a*(1-b)
	w10, w11 := (1-a)*b, a*b
	side := 2*reach + 1
	for row := range side {
		at := (j-reach+row)*l.width + i - reach
		one, two := l.pix[at:at+side+1], l.pix[at+l.width:at+l.width+side+1]
		out := to[row*side:][:side]
		for n := range out {
			out[n] = w00*one[n] + w01*one[n+1] + w10*two[n] + w11*two[n+1]
		}
	}
}

// find selects the best corner of each cell outside the boxes (Shi and Tomasi, 1994).
func (c *Estimator) find(small *Thumbnail, moving []Box) {
	const stride = 4
	l := &c.previous[0]
	c.corners = c.corners[:0]
	for top := margin; top < l.height-margin; top += cell {
		for left := margin; left < l.width-margin; left += cell {
			best := corner{weight: minEigenvalue}
			for y := top; y < min(top+cell, l.height-margin); y += stride {
				for x := left; x < min(left+cell, l.width-margin); x += stride {
					if inside(small, moving, x, y) {
						continue
					}
					if e := l.edges(x, y); e > best.weight {
						best = corner{x: float64(x), y: float64(y), weight: e}
					}
				}
			}
			if best.x > 0 {
				c.corners = append(c.corners, best)
			}
		}
	}
}

// inside reports whether the window around a thumbnail pixel touches a box.
func inside(small *Thumbnail, moving []Box, x, y int) bool {
	px, py := (float64(x)+0.5)*small.ScaleX, (float64(y)+0.5)*small.ScaleY
	wx, wy := radius*small.ScaleX, radius*small.ScaleY
	for i := range moving {
		b := &moving[i]
		if px > float64(b.X1)-wx && px < float64(b.X2)+wx && py > float64(b.Y1)-wy && py < float64(b.Y2)+wy {
			return true
		}
	}
	return false
}

// edges returns the smaller eigenvalue of the gradients around a pixel, per pixel.
func (l *level) edges(x, y int) float64 {
	var xx, xy, yy float32
	for j := y - radius; j <= y+radius; j++ {
		row := j * l.width
		for i := row + x - radius; i <= row+x+radius; i++ {
			gx, gy := (l.pix[i+1]-l.pix[i-1])/2, (l.pix[i+l.width]-l.pix[i-l.width])/2
			xx, xy, yy = xx+gx*gx, xy+gx*gy, yy+gy*gy
		}
	}
	const area = (2*radius + 1) * (2*radius + 1)
	half, difference := float64(xx+yy)/2, float64(xx-yy)/2
	return (half - math.Sqrt(difference*difference+float64(xy)*float64(xy))) / area
}

// follow tracks a corner from the coarsest level to the finest.
func (c *Estimator) follow(k *corner) bool {
	var dx, dy float64
	for i := levels - 1; i >= 0; i-- {
		dx, dy = 2*dx, 2*dy
		scale := math.Ldexp(1, -i)
		// A pixel's centre is the centre of four pixels on the finer level.
		x, y := (k.x+0.5)*scale-0.5, (k.y+0.5)*scale-0.5
		var ok bool
		dx, dy, ok = lucasKanade(&c.previous[i], &c.current[i], x, y, dx, dy)
		if !ok && i == 0 {
			return false
		}
	}
	k.toX, k.toY = k.x+dx, k.y+dy
	return true
}

// lucasKanade refines an estimate of how far the window around a position moved. It returns false and the given estimate if the window
// leaves an image, lacks texture or does not match in the end.
func lucasKanade(before, now *level, x, y, dx, dy float64) (float64, float64, bool) {
	const side = 2*radius + 1
	if !before.holds(x, y) {
		return dx, dy, false
	}
	const wide = side + 2
	var around [wide * wide]float32
	before.sample(x, y, radius+1, around[:])
	var was, is, gx, gy [side * side]float32
	var xx, xy, yy float32
	for j := range side {
		for i := range side {
			n, at := j*side+i, (j+1)*wide+i+1
			was[n] = around[at]
			a, b := (around[at+1]-around[at-1])/2, (around[at+wide]-around[at-wide])/2
			gx[n], gy[n] = a, b
			xx, xy, yy = xx+a*a, xy+a*b, yy+b*b
		}
	}
	determinant := xx*yy - xy*xy
	if determinant < side*side {
		return dx, dy, false
	}
	toX, toY := dx, dy
	var difference float32
	for range maxIterations {
		if !now.holds(x+toX, y+toY) {
			return dx, dy, false
		}
		now.sample(x+toX, y+toY, radius, is[:])
		var bx, by float32
		difference = 0
		for n, v := range is {
			d := was[n] - v
			bx, by, difference = bx+d*gx[n], by+d*gy[n], difference+max(d, -d)
		}
		sx, sy := float64((yy*bx-xy*by)/determinant), float64((xx*by-xy*bx)/determinant)
		toX, toY = toX+sx, toY+sy
		if sx*sx+sy*sy < 1e-4 {
			break
		}
	}
	const unlike = 16 // grey values per pixel
	return toX, toY, difference < unlike*side*side
}

// holds reports whether the window around a position plus one pixel is in the image.
func (l *level) holds(x, y float64) bool {
	return x >= radius+1 && y >= radius+1 && x < float64(l.width-radius-3) && y < float64(l.height-radius-3)
}
