package scene

import "math"

// pattern is the relief of a belt.
type pattern uint8

const (
	smooth pattern = iota
	woven
	ribbed
	diamond
	patterns
)

// ground is the surface below the parts.
type ground struct {
	colour  rgb
	pattern pattern
	pitch   float64 // of the pattern in pixels
	depth   float64 // of the pattern, as a share of the colour
	grain   float64 // fine texture
	blotch  float64 // wear, in large soft spots
	scratch int     // scratches along the belt
}

// belt renders a texture of width x height pixels in BGR that repeats along x.
func (g ground) belt(width, height int, unit float64, blur int, cast rgb, seed uint64) []byte {
	repeats := max(1, int(math.Round(float64(width)/g.pitch)))
	pitch := float64(width) / float64(repeats)
	values := make([]float32, width*height)
	cells := max(2, int(float64(width)/(0.8*unit)))
	cell := float64(width) / float64(cells)
	r := seeded(seed, 1)
	for y := range height {
		wear := 0.0
		for x := range width {
			v := 1.0
			fx, fy := float64(x)/pitch, float64(y)/pitch
			switch g.pattern {
			case woven:
				v += g.depth * math.Sin(2*math.Pi*fx) * math.Sin(2*math.Pi*fy)
			case ribbed:
				v += g.depth * math.Cos(2*math.Pi*fx)
			case diamond:
				a, b := math.Abs(frac(fx+fy)-0.5), math.Abs(frac(fx-fy+1e4)-0.5)
				v += g.depth * (1 - 8*math.Min(0.25, math.Min(a, b)))
			}
			v += g.grain * (float64(r.next()>>40)/(1<<23) - 1)
			if x%2 == 0 {
				// Wear is smooth: every second column is enough.
				fx, fy = float64(x)/cell, float64(y)/cell
				wear = lattice(seed, fx, fy, cells, 1<<20) + 0.5*lattice(seed+1, 3*fx, 3*fy, 3*cells, 1<<20)
			}
			values[y*width+x] = float32(v + g.blotch*wear)
		}
	}
	for range g.scratch {
		x, y := r.float()*float64(width), r.float()*float64(height)
		length, tone := r.between(0.2, 2)*unit, r.between(-0.12, 0.15)
		lean := r.between(-0.05, 0.05)
		for i := range int(length) {
			yy := int(y + lean*float64(i))
			if yy >= 0 && yy < height {
				values[yy*width+(int(x)+i)%width] += float32(tone * math.Sin(math.Pi*float64(i)/length))
			}
		}
	}
	texture := make([]byte, 3*width*height)
	for y := range height {
		line := values[y*width:][:width]
		for x := range width {
			v := float32(0)
			for k := range max(1, blur) {
				v += line[(x+k)%width]
			}
			v /= float32(max(1, blur))
			p := texture[3*(y*width+x):][:3]
			p[0], p[1], p[2] = level(v*float32(g.colour.b*cast.b)), level(v*float32(g.colour.g*cast.g)), level(v*float32(g.colour.r*cast.r))
		}
	}
	return texture
}

func frac(v float64) float64 { return v - math.Floor(v) }

// railColour returns the brightness of the aluminium side rail by the distance from the outer edge of the image, 0 to 1 at the belt.
func railColour(t float64) float64 {
	switch {
	case t > 0.94:
		return 0.06
	case t > 0.86:
		return 0.75 - 3*(t-0.86)
	case t > 0.56:
		return 0.5 + 0.12*math.Sin((t-0.56)*10)
	case t > 0.5:
		return 0.2
	case t > 0.46:
		return 0.72
	}
	return 0.36 + 0.3*t
}

// rail renders a side rail of width x height pixels in BGR, brushed along x; the belt is below it, or above if flipped.
func rail(width, height int, flipped bool, cast rgb, seed uint64) []byte {
	strip := make([]byte, 3*width*height)
	for y := range height {
		t := (float64(y) + 0.5) / float64(height)
		if flipped {
			t = 1 - t
		}
		r := seeded(seed, uint64(y))
		brush := 0.03 * r.normal()
		for x := range width {
			v := railColour(t) * (1 + brush + 0.04*lattice(seed, float64(x)/40, float64(y), 1<<20, 1<<20))
			p := strip[3*(y*width+x):][:3]
			p[0], p[1], p[2] = level(float32(v*cast.b)), level(float32(0.985*v*cast.g)), level(float32(0.96*v*cast.r))
		}
	}
	return strip
}
