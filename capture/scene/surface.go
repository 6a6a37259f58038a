package scene

import "math"

// texel is one point of a shape's surface, ready to be rotated and lit.
type texel struct {
	cover    float32 // 0 outside, 1 inside, between on the outline
	nx, ny   float32 // slope of the surface
	shade    float32
	r, g, b  float32 // colour, or the factor on the tint for metal
	metallic bool
}

// surface is a shape sampled on a square grid. It is read-only once made.
type surface struct {
	size       int     // texels along a side
	resolution float64 // texels per unit
	texels     []texel
	shape      shape
	alpha      float32
	// Texels that the shape covers, as bounds.
	left, top, right, bottom int
	// coarser is the same shape at half the resolution, nil at the last level.
	coarser *surface
}

// near returns the coarsest level with at least one texel per pixel at unit pixels per unit.
func (m *surface) near(unit float64) *surface {
	for m.coarser != nil && m.coarser.resolution >= unit {
		m = m.coarser
	}
	return m
}

// newPyramid is a surface with its coarser levels, for images of many scales.
func newPyramid(s shape, resolution, alpha float64) *surface {
	m := newSurface(s, resolution, alpha)
	if resolution >= 2*coarsest {
		m.coarser = newPyramid(s, resolution/2, alpha)
	}
	return m
}

const coarsest = 28 // texels a unit

// steepest caps slopes: an outline's edge is a rim, not a mirror.
const steepest = 1.6

// newSurface samples the shape with the given number of texels per unit.
func newSurface(s shape, resolution, alpha float64) *surface {
	size := int(math.Ceil(2*s.reach*resolution)) + 2
	m := &surface{size: size, resolution: resolution, texels: make([]texel, size*size), shape: s, alpha: float32(alpha)}
	m.left, m.top = size, size
	height := make([]float32, size*size)
	for j := range size {
		for i := range size {
			x, y := (float64(i)+0.5-float64(size)/2)/resolution, (float64(j)+0.5-float64(size)/2)/resolution
			p := s.at(x, y)
			cover := math.Min(1, math.Max(0, 0.5-p.d*resolution))
			m.texels[j*size+i] = texel{
				cover: float32(cover), shade: float32(p.shade), metallic: p.metal,
				r: float32(p.colour.r), g: float32(p.colour.g), b: float32(p.colour.b),
			}
			height[j*size+i] = float32(p.h)
			if cover > 0 {
				m.left = min(m.left, i)
				m.right = max(m.right, i)
				m.top = min(m.top, j)
				m.bottom = max(m.bottom, j)
			}
		}
	}
	inside := func(k, centre int) float32 {
		if m.texels[k].cover == 0 {
			return height[centre] - float32(1.2/resolution)
		}
		return height[k]
	}
	limit := func(v float32) float32 { return min(steepest, max(-steepest, v)) }
	for j := 1; j < size-1; j++ {
		for i := 1; i < size-1; i++ {
			k := j*size + i
			if m.texels[k].cover == 0 {
				continue
			}
			m.texels[k].nx = limit((inside(k-1, k) - inside(k+1, k)) * float32(resolution) / 2)
			m.texels[k].ny = limit((inside(k-size, k) - inside(k+size, k)) * float32(resolution) / 2)
		}
	}
	return m
}

// catalogue holds every surface that a scene is composed of.
type catalogue struct {
	parts       [classes][]*surface
	distractors []*surface
	kinds       []distractor
}

func newCatalogue(resolution float64) *catalogue {
	c := &catalogue{kinds: distractors()}
	for class, shapes := range partShapes() {
		for _, s := range shapes {
			c.parts[class] = append(c.parts[class], newPyramid(s, resolution, 1))
		}
	}
	for _, d := range c.kinds {
		alpha := 1.0
		if d.stain {
			alpha = stainAlpha
		}
		c.distractors = append(c.distractors, newPyramid(d.shape, resolution, alpha))
	}
	return c
}
