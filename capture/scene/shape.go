package scene

import "math"

// sample is a shape at one point. Lengths are in units of the scene's part size.
type sample struct {
	d      float64 // signed distance to the outline, negative inside
	h      float64 // height above the belt
	shade  float64 // 1 is open, less is recessed
	metal  bool    // metal takes the part's tint, other material has its own colour
	colour rgb
}

type rgb struct{ r, g, b float64 }

func (c rgb) scaled(k float64) rgb { return rgb{c.r * k, c.g * k, c.b * k} }

// shape is a solid seen from above, in a square of side 2*reach around the origin.
type shape struct {
	at    func(x, y float64) sample
	reach float64
	// turns is the number of pre-rendered rotations and span the angle that they cover, less for symmetric shapes.
	turns int
	span  float64
}

var white = rgb{1, 1, 1}

func steel(d, h float64) sample { return sample{d: d, h: h, shade: 1, metal: true, colour: white} }

func ring(x, y, inner, outer float64) float64 {
	r := math.Hypot(x, y)
	return math.Max(r-outer, inner-r)
}

func box(x, y, w, h float64) float64 {
	dx, dy := math.Abs(x)-w, math.Abs(y)-h
	return math.Hypot(math.Max(dx, 0), math.Max(dy, 0)) + math.Min(math.Max(dx, dy), 0)
}

// polygon returns the distance to a regular polygon with the given inner radius.
func polygon(x, y float64, sides int, inner float64) float64 {
	step := 2 * math.Pi / float64(sides)
	a := math.Mod(math.Atan2(y, x)+2*math.Pi+step/2, step) - step/2
	return math.Hypot(x, y)*math.Cos(a) - inner
}

// bevel returns the height of a flat top with edges bevelled over the given width.
func bevel(d, width, top float64) float64 {
	t := math.Min(1, math.Max(0, -d/width))
	return top - width*(1-t)*(1-t)
}

func dome(y, radius float64) float64 { return math.Sqrt(math.Max(0, radius*radius-y*y)) }

func segment(x, y, ax, ay, bx, by float64) float64 {
	px, py := x-ax, y-ay
	vx, vy := bx-ax, by-ay
	t := math.Min(1, math.Max(0, (px*vx+py*vy)/(vx*vx+vy*vy)))
	return math.Hypot(px-t*vx, py-t*vy)
}

// thread is the profile of a screw thread along x, -1 to 1, slanted as a helix shows.
func thread(x, y, pitch float64) float64 {
	f := frac((x + 0.18*y) / pitch)
	return 1 - 4*math.Abs(f-0.5)
}

// boltShape lies on its side: a head of the given half width and a threaded shank.
func boltShape(length, head, radius, plain float64, socket bool) shape {
	left := -length / 2
	neck := left + 0.75*head
	return shape{reach: length/2 + 0.04, turns: 16, span: 2 * math.Pi, at: func(x, y float64) sample {
		dHead := box(x-(left+neck)/2, y, (neck-left)/2, head)
		r := radius
		if x > neck+plain {
			r += 0.012 * thread(x, y, 0.042)
		}
		tip := length / 2
		r -= math.Max(0, x-(tip-0.03))
		dShank := math.Max(math.Max(math.Abs(y)-r, x-tip), neck-0.02-x)
		if dHead < dShank {
			h := 0.0
			if socket {
				h = dome(y, head*1.02) + 0.006*math.Sin(y*260)
			} else {
				h = head * (0.95 - 0.55*math.Max(0, math.Abs(y)/head-0.5))
			}
			return steel(dHead, h-0.03*math.Pow(math.Max(0, 1+dHead/0.03), 2))
		}
		s := steel(dShank, dome(y, r+0.002))
		if x > neck+plain {
			s.shade = 0.82 + 0.18*thread(x, y, 0.042)
		}
		if x < neck+0.03 {
			s.shade *= 0.6 + 0.4*math.Max(0, x-neck)/0.03
		}
		return s
	}}
}

// nutShape lies flat: a hexagon with a chamfered top and a threaded hole; flange is the outer radius of a collar, 0 for none.
func nutShape(across, hole, flange float64) shape {
	return shape{reach: math.Max(across*1.16, flange) + 0.04, turns: 6, span: math.Pi / 3, at: func(x, y float64) sample {
		r := math.Hypot(x, y)
		hex := polygon(x, y, 6, across)
		d := math.Max(hex, hole-r)
		s := steel(d, bevel(hex, 0.02, 0.2)-0.5*math.Max(0, r-across*0.98))
		if r < hole+0.045 {
			s.h -= (hole + 0.045 - r) * 1.3
			s.shade = 0.35 + 0.4*(r-hole)/0.045
			if math.Mod(r-hole, 0.018) < 0.008 {
				s.shade += 0.15
			}
		}
		if flange > 0 {
			s.d = ring(x, y, hole, flange)
			if hex > 0 {
				s.h, s.shade = bevel(r-flange, 0.015, 0.06), 0.75+0.25*math.Min(1, hex/0.04)
			}
		}
		return s
	}}
}

// washerShape is a flat ring, split open when gap is not 0.
func washerShape(outer, inner, gap float64) shape {
	w := shape{reach: outer + 0.04, turns: 2, span: math.Pi / 2}
	if gap > 0 {
		w.turns, w.span = 6, 2*math.Pi
	}
	w.at = func(x, y float64) sample {
		d := ring(x, y, inner, outer)
		h := bevel(d, 0.018, 0.05)
		if gap > 0 {
			if x > 0 {
				d = math.Max(d, gap-math.Abs(y+0.25*(x-outer)))
			}
			h = bevel(d, 0.03, 0.07) + 0.03*math.Atan2(y, x)/math.Pi
		}
		// Turned faces shine in fine rings.
		return steel(d, h+0.0005*math.Sin(math.Hypot(x, y)*420))
	}
	return w
}

// gearShape is a spur gear with a hub; holes lighten its web.
func gearShape(teeth int, outer, bore float64, holes int) shape {
	root := outer - 0.085
	if teeth < 14 {
		root -= 0.02
	}
	return shape{reach: outer + 0.04, turns: 6, span: 2 * math.Pi / float64(teeth), at: func(x, y float64) sample {
		r, a := math.Hypot(x, y), math.Atan2(y, x)
		f := frac(a * float64(teeth) / (2 * math.Pi))
		flank := (math.Abs(f-0.5)*2 - 0.5) * math.Pi * r / float64(teeth)
		lean := 0.28 * (r - root)
		d := math.Max(r-outer, math.Max(bore-r, math.Min(r-root, -flank+lean)))
		if key := box(x-bore, y, 0.035, 0.03); key > -d || bore-r > -0.03 {
			d = math.Max(d, -key)
		}
		s := steel(d, bevel(d, 0.018, 0.12))
		hub, rim := bore+0.075, root-0.05
		if r > hub && r < rim {
			s.h -= 0.03 * math.Min(1, math.Min(r-hub, rim-r)/0.02)
			s.shade = 0.85
			s.h += 0.0006 * math.Sin(r*330)
		}
		if holes > 0 {
			step := 2 * math.Pi / float64(holes)
			ha := math.Round(a/step) * step
			mid := (hub + rim) / 2
			hd := (rim-hub)*0.36 - math.Hypot(x-mid*math.Cos(ha), y-mid*math.Sin(ha))
			s.d = math.Max(s.d, hd)
			s.h = math.Min(s.h, bevel(hd, 0.012, 0.1))
		}
		return s
	}}
}

// bearingShape is a ball bearing; a sealed one hides its balls behind a ring of the given colour.
func bearingShape(outer, bore float64, balls int, seal *rgb) shape {
	wall := (outer - bore) * 0.25
	in, out := bore+wall, outer-wall
	mid := (in + out) / 2
	return shape{reach: outer + 0.04, turns: 4, span: 2 * math.Pi / float64(balls), at: func(x, y float64) sample {
		r, a := math.Hypot(x, y), math.Atan2(y, x)
		d := ring(x, y, bore, outer)
		s := steel(d, bevel(d, 0.022, 0.14))
		if r <= in || r >= out {
			inside := math.Min(math.Abs(r-in), math.Abs(r-out))
			s.h -= 0.02 * math.Max(0, 1-inside/0.012)
			return s
		}
		if seal != nil {
			s.metal, s.colour, s.h = false, *seal, 0.11+0.01*math.Sin((r-in)/(out-in)*math.Pi*2)
			return s
		}
		step := 2 * math.Pi / float64(balls)
		ba := math.Round(a/step) * step
		radius := (out - in) * 0.5
		away := math.Hypot(x-mid*math.Cos(ba), y-mid*math.Sin(ba))
		if away < radius {
			s.h = 0.05 + dome(away, radius)
			s.shade = 0.55 + 0.45*dome(away, radius)/radius
			return s
		}
		s.h, s.shade = 0.04, 0.28
		return s
	}}
}

// springShape is a compression spring from the side, strands in front over strands behind.
func springShape(length, radius, wire float64, coils int) shape {
	pitch := (length - 2*wire) / float64(coils)
	return shape{reach: math.Max(length/2, radius) + wire + 0.03, turns: 10, span: math.Pi, at: func(x, y float64) sample {
		front, back := math.Inf(1), math.Inf(1)
		near := int(math.Floor((x + length/2) / pitch))
		for i := max(0, near-2); i <= min(coils-1, near+2); i++ {
			x0 := -length/2 + wire + float64(i)*pitch
			front = math.Min(front, segment(x, y, x0, -radius+wire, x0+0.5*pitch, radius-wire))
			back = math.Min(back, segment(x, y, x0+0.5*pitch, radius-wire, x0+pitch, -radius+wire))
		}
		// Closed ends.
		e := length/2 - wire
		front = math.Min(front, segment(x, y, -e, -radius+wire, -e, radius-wire))
		front = math.Min(front, segment(x, y, e, -radius+wire, e, radius-wire))
		if front <= wire {
			return steel(front-wire, 0.2+dome(front, wire)-0.12*y*y/(radius*radius))
		}
		s := steel(math.Min(front, back)-wire, 0.06+dome(back, wire))
		s.shade = 0.5
		return s
	}}
}

// partShapes are the variants of each class.
func partShapes() [classes][]shape {
	rubber, blue := rgb{0.1, 0.1, 0.11}, rgb{0.12, 0.2, 0.42}
	return [classes][]shape{
		Bolt: {
			boltShape(1.05, 0.17, 0.085, 0.22, false), boltShape(0.85, 0.19, 0.1, 0, false),
			boltShape(0.95, 0.15, 0.09, 0.05, true), boltShape(0.72, 0.16, 0.085, 0, true),
		},
		Nut:    {nutShape(0.29, 0.155, 0), nutShape(0.25, 0.12, 0), nutShape(0.24, 0.13, 0.35), nutShape(0.31, 0.19, 0)},
		Washer: {washerShape(0.3, 0.16, 0), washerShape(0.34, 0.13, 0), washerShape(0.28, 0.17, 0.022), washerShape(0.25, 0.14, 0)},
		Gear:   {gearShape(16, 0.44, 0.1, 0), gearShape(12, 0.38, 0.09, 0), gearShape(22, 0.48, 0.1, 6), gearShape(18, 0.46, 0.12, 5)},
		Bearing: {
			bearingShape(0.37, 0.15, 9, nil), bearingShape(0.4, 0.2, 12, nil),
			bearingShape(0.36, 0.14, 9, &rubber), bearingShape(0.38, 0.17, 9, &blue),
		},
		Spring: {
			springShape(1.0, 0.17, 0.032, 9), springShape(0.8, 0.15, 0.028, 10), springShape(0.66, 0.2, 0.038, 5),
			springShape(0.9, 0.13, 0.026, 13),
		},
	}
}
