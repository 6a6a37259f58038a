package scene

import "math"

// sprite is a rotated and lit part with its shadow, ready to be placed on the image.
type sprite struct {
	width, height    int
	originX, originY int    // of the part's centre from the left top corner
	pixels           []byte // B, G, R, opacity; colours multiplied by the opacity, shadow included
	mask             []bool // the part itself, where it covers at least half a pixel
	area             int    // pixels of the mask
}

// light is the direction and intensity of the light that shades the parts.
type light struct {
	x, y, z  float64 // direction towards the lamp, in image axes, of length 1
	colour   rgb
	ambient  float64
	shadow   float64 // darkness of a full shadow, 0 to 1
	softness float64 // blur of shadows in units of the part size
	length   float64 // offset of shadows in units of the part size
}

func newLight(azimuth, elevation float64) light {
	return light{
		x: math.Cos(azimuth) * math.Cos(elevation), y: math.Sin(azimuth) * math.Cos(elevation), z: math.Sin(elevation),
		colour: white, ambient: 0.35, shadow: 0.62, softness: 0.045, length: 0.1 / math.Tan(elevation),
	}
}

// pose is how a surface is drawn.
type pose struct {
	unit  float64 // pixels of one unit
	angle float64 // clockwise on the image
	blur  int     // pixels of motion along x
	tint  rgb     // of metal
	dim   float64 // factor on every colour
}

// render rotates, lights and blurs a surface. It is long because each step needs the geometry of the one before.
func render(m *surface, p pose, l light) *sprite {
	reach := m.shape.reach * p.unit * math.Sqrt2
	soft := int(math.Round(l.softness * p.unit))
	pad := int(math.Ceil(l.length*p.unit)) + 2*soft + p.blur + 2
	half := int(math.Ceil(reach)) + pad
	size := 2 * half
	colour := make([]float32, 4*size*size)
	sin, cos := math.Sincos(p.angle)
	steps := min(5, max(2, int(math.Ceil(1.2*m.resolution/p.unit))))
	weight := float32(1) / float32(steps*steps)
	left, right := size, 0
	top, bottom := size, 0
	// A pixel this far from the shape's bounds, in texels, cannot see it.
	margin := 1.5 + m.resolution/p.unit
	for j := pad; j < size-pad; j++ {
		for i := pad; i < size-pad; i++ {
			u, v := m.texel(float64(i-half)+0.5, float64(j-half)+0.5, p.unit, sin, cos)
			if u < float64(m.left)-margin || u > float64(m.right)+margin || v < float64(m.top)-margin || v > float64(m.bottom)+margin {
				continue
			}
			px := colour[4*(j*size+i):][:4]
			for s := range steps * steps {
				x := float64(i-half) + (float64(s%steps)+0.5)/float64(steps)
				y := float64(j-half) + (float64(s/steps)+0.5)/float64(steps)
				u, v := m.texel(x, y, p.unit, sin, cos)
				t, ok := m.lookup(u, v)
				if !ok {
					continue
				}
				cover := t.cover * m.alpha * weight
				b, g, r := shade(&t, p, l, sin, cos)
				px[0] += b * cover
				px[1] += g * cover
				px[2] += r * cover
				px[3] += cover
			}
			if px[3] > 0 {
				left = min(left, i)
				right = max(right, i+1)
				top = min(top, j)
				bottom = max(bottom, j+1)
			}
		}
	}
	if right <= left {
		left = half
		right = half + 1
		top = half
		bottom = half + 1
	}
	if p.blur > 1 {
		smear(colour, size, p.blur, top, bottom)
		right += p.blur
		left -= p.blur
	}
	shadow := castShadow(colour, size, p.unit, soft, l)
	dark := float32(l.shadow)
	if m.alpha < 1 {
		dark = 0 // a stain has no height
	}
	dx, dy := int(math.Round(-l.x*l.length*p.unit)), int(math.Round(-l.y*l.length*p.unit))
	x0, x1 := max(0, min(left, left+dx-2*soft)), min(size, max(right, right+dx+2*soft))
	y0, y1 := max(0, min(top, top+dy-2*soft)), min(size, max(bottom, bottom+dy+2*soft))
	out := &sprite{width: x1 - x0, height: y1 - y0, originX: half - x0, originY: half - y0}
	out.pixels = make([]byte, 4*out.width*out.height)
	out.mask = make([]bool, out.width*out.height)
	for j := range out.height {
		for i := range out.width {
			k := (j+y0)*size + i + x0
			c, to := colour[4*k:][:4], out.pixels[4*(j*out.width+i):][:4]
			opacity := c[3] + (1-c[3])*shadow[k]*dark
			to[0] = level(c[0])
			to[1] = level(c[1])
			to[2] = level(c[2])
			to[3] = level(opacity)
			if c[3] >= 0.5*m.alpha {
				out.mask[j*out.width+i] = true
				out.area++
			}
		}
	}
	return out
}

// texel returns the position on the surface's grid of a point of the rotated image, in pixels from the centre.
func (m *surface) texel(x, y, unit, sin, cos float64) (u, v float64) {
	k, middle := m.resolution/unit, float64(m.size)/2-0.5
	return (x*cos+y*sin)*k + middle, (y*cos-x*sin)*k + middle
}

// lookup interpolates the surface between texels: outline and slopes, but not materials.
func (m *surface) lookup(u, v float64) (texel, bool) {
	if u < 0 || v < 0 || u >= float64(m.size-1) || v >= float64(m.size-1) {
		return texel{}, false
	}
	i, j := int(u), int(v)
	fu, fv := float32(u)-float32(i), float32(v)-float32(j)
	k := j*m.size + i
	a, b := &m.texels[k], &m.texels[k+1]
	c, d := &m.texels[k+m.size], &m.texels[k+m.size+1]
	if a.cover+b.cover+c.cover+d.cover == 0 {
		return texel{}, false
	}
	wa, wb := (1-fu)*(1-fv), fu*(1-fv)
	wc, wd := (1-fu)*fv, fu*fv
	near := a
	switch {
	case fu >= 0.5 && fv >= 0.5:
		near = d
	case fu >= 0.5:
		near = b
	case fv >= 0.5:
		near = c
	}
	t := *near
	t.cover = wa*a.cover + wb*b.cover + wc*c.cover + wd*d.cover
	t.nx = wa*a.nx + wb*b.nx + wc*c.nx + wd*d.nx
	t.ny = wa*a.ny + wb*b.ny + wc*c.ny + wd*d.ny
	t.shade = wa*a.shade + wb*b.shade + wc*c.shade + wd*d.shade
	return t, true
}

// shade returns the colour of a texel, 0 to 1: metal mirrors a studio with one lamp, a long soft box and a dark floor; other materials are
// matt.
func shade(t *texel, p pose, l light, sin, cos float64) (b, g, r float32) {
	sx, sy := float64(t.nx), float64(t.ny)
	nx, ny := sx*cos-sy*sin, sx*sin+sy*cos
	nz := 1 / math.Sqrt(1+nx*nx+ny*ny)
	nx, ny = nx*nz, ny*nz
	diffuse := math.Max(0, nx*l.x+ny*l.y+nz*l.z)
	rx, ry, rz := 2*nz*nx, 2*nz*ny, 2*nz*nz-1
	shine := math.Max(0, rx*l.x+ry*l.y+rz*l.z)
	shine *= shine * shine
	shine *= shine
	k, glare, base := float64(t.shade)*p.dim, 0.0, rgb{float64(t.r), float64(t.g), float64(t.b)}
	if t.metallic {
		across := rx*l.y - ry*l.x + 0.35
		strip := math.Max(0, 1-8*across*across)
		glare = 0.25 * k * shine * shine
		k *= 0.2 + 0.38*diffuse + 0.55*shine + 0.3*strip + 0.16*(rx*l.x+ry*l.y)
		base = p.tint
	} else {
		glare = 0.1 * p.dim * shine
		k *= l.ambient + (1-l.ambient)*diffuse
	}
	return float32(math.Min(1, (base.b*k+glare)*l.colour.b)), float32(math.Min(1, (base.g*k+glare)*l.colour.g)),
		float32(math.Min(1, (base.r*k+glare)*l.colour.r))
}

// smear is motion blur: the mean over length pixels along x, centred.
func smear(px []float32, size, length, top, bottom int) {
	row := make([]float32, 4*size)
	for j := top; j < bottom; j++ {
		line := px[4*j*size : 4*(j+1)*size]
		copy(row, line)
		for i := length; i < size-length; i++ {
			for c := range 4 {
				sum := float32(0)
				for k := range length {
					sum += row[4*(i+k-length/2)+c]
				}
				line[4*i+c] = sum / float32(length)
			}
		}
	}
}

// castShadow shifts the part's opacity away from the lamp and blurs it with two box filters, which approximate a tent.
func castShadow(px []float32, size int, unit float64, soft int, l light) []float32 {
	dx, dy := int(math.Round(-l.x*l.length*unit)), int(math.Round(-l.y*l.length*unit))
	shadow, work := make([]float32, size*size), make([]float32, size*size)
	for j := max(0, dy); j < min(size, size+dy); j++ {
		for i := max(0, dx); i < min(size, size+dx); i++ {
			shadow[j*size+i] = px[4*((j-dy)*size+i-dx)+3]
		}
	}
	for range 2 {
		boxBlur(work, shadow, size, soft, 1, size)
		boxBlur(shadow, work, size, soft, size, 1)
	}
	return shadow
}

// boxBlur takes the mean over 2*radius+1 values along the step.
func boxBlur(to, from []float32, size, radius, step, line int) {
	scale := 1 / float32(2*radius+1)
	for n := range size {
		base, sum := n*line, float32(0)
		for i := range min(radius, size) {
			sum += from[base+i*step]
		}
		for i := range size {
			if i+radius < size {
				sum += from[base+(i+radius)*step]
			}
			if i-radius-1 >= 0 {
				sum -= from[base+(i-radius-1)*step]
			}
			to[base+i*step] = max(0, sum*scale)
		}
	}
}

func level(v float32) byte { return byte(min(1, max(0, v))*255 + 0.5) }
