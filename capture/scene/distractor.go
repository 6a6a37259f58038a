package scene

import "math"

// distractor is an object on the belt that is not a part: it is rendered, it hides what is below it, and it is never in the ground truth.
type distractor struct {
	shape
	flat  bool    // lies under the parts
	stain bool    // translucent
	scale float64 // of the part size
}

func plain(d, h float64, c rgb) sample { return sample{d: d, h: h, shade: 1, colour: c} }

// leafShape is a dry leaf with a midrib and veins.
func leafShape(seed uint64, c rgb) shape {
	return shape{reach: 0.56, turns: 3, span: 2 * math.Pi, at: func(x, y float64) sample {
		bend := y - 0.12*math.Cos(x*3)
		wide := 0.22 * math.Sqrt(math.Max(0, 1-x*x/0.2)) * (1 + 0.12*lattice(seed, x*14, 3, 64, 64))
		d := (math.Abs(bend) - wide) * 0.8
		if math.Abs(x) >= 0.447 {
			d = 0.1
		}
		d = math.Min(d, segment(x, y, 0.42, 0.04, 0.54, -0.05)-0.012)
		vein := math.Min(math.Abs(bend), 0.6*math.Abs(math.Mod(10+x+0.6*math.Abs(bend), 0.09)-0.045))
		s := plain(d, 0.05+0.03*lattice(seed, x*9+8, y*9+8, 64, 64), c.scaled(0.85+0.25*lattice(seed+1, x*12+9, y*12+9, 64, 64)))
		if vein < 0.01 {
			s.colour = s.colour.scaled(1.25)
		}
		return s
	}}
}

// woodScrewShape is a screw of an unknown class: tapered, countersunk, with a coarse thread.
func woodScrewShape() shape {
	return shape{reach: 0.52, turns: 3, span: 2 * math.Pi, at: func(x, y float64) sample {
		r := 0.06 * math.Min(1, (0.48-x)/0.35)
		if x > -0.2 {
			r += 0.035 * math.Max(0, thread(x, y, 0.075)) * math.Min(1, math.Max(0, (0.46-x)/0.15))
		}
		if x < -0.34 {
			r = 0.055 + (-0.34-x)*1.05
		}
		return steel(math.Max(math.Abs(y)-r, math.Max(x-0.48, -0.46-x)), dome(y, r+0.01))
	}}
}

// pebbleShape is a stone.
func pebbleShape(seed uint64) shape {
	return shape{reach: 0.34, turns: 3, span: 2 * math.Pi, at: func(x, y float64) sample {
		a := math.Atan2(y, x)
		r := math.Hypot(x, y*1.35) - 0.2 - 0.05*lattice(seed, 3+2*math.Cos(a), 3+2*math.Sin(a), 64, 64)
		g := 0.42 + 0.1*lattice(seed+2, x*30+20, y*30+20, 128, 128)
		return plain(r, dome(math.Max(0, 0.22+r), 0.24), rgb{g, g * 0.93, g * 0.84})
	}}
}

// paperShape is a torn slip with lines of print.
func paperShape(seed uint64) shape {
	return shape{reach: 0.6, turns: 3, span: 2 * math.Pi, at: func(x, y float64) sample {
		d := box(x, y, 0.46, 0.3) + 0.02*lattice(seed, x*11+9, y*11+9, 64, 64)
		s := plain(d, 0.02+0.03*lattice(seed+1, x*5+9, y*5+9, 64, 64), rgb{0.86, 0.85, 0.8})
		line := math.Mod(10+y, 0.1)
		if line < 0.035 && math.Abs(y) < 0.22 && math.Abs(x) < 0.36 && lattice(seed+2, (x+2)*26, math.Floor((y+10)/0.1), 256, 256) > -0.35 {
			s.colour = s.colour.scaled(0.55)
		}
		return s
	}}
}

// stainShape is a puddle of oil: translucent, without height.
func stainShape(seed uint64) shape {
	return shape{reach: 0.6, turns: 3, span: 2 * math.Pi, at: func(x, y float64) sample {
		a := math.Atan2(y, x)
		d := math.Hypot(x, y) - 0.36 - 0.13*lattice(seed, 4+2*math.Cos(a), 4+2*math.Sin(a), 64, 64) - 0.05*lattice(seed+1, x*9+9, y*9+9, 64, 64)
		return plain(d, 0, rgb{0.05, 0.05, 0.045})
	}}
}

// cableShape is a length of cable in a loose curve.
func cableShape(seed uint64, c rgb) shape {
	r := seeded(seed)
	var px, py [33]float64
	phase, swing, wave := r.between(0, 6), r.between(0.1, 0.3), r.between(3, 6)
	for i := range px {
		t := float64(i)/16 - 1
		px[i], py[i] = t*0.5, swing*math.Sin(wave*t+phase)+0.1*math.Sin(2.3*wave*t)
	}
	return shape{reach: 0.6, turns: 3, span: 2 * math.Pi, at: func(x, y float64) sample {
		d := math.Inf(1)
		for i := 1; i < len(px); i++ {
			d = math.Min(d, segment(x, y, px[i-1], py[i-1], px[i], py[i]))
		}
		const wire = 0.024
		return plain(d-wire, 0.1+dome(d, wire), c)
	}}
}

// capShape is a plastic bottle cap from above.
func capShape(c rgb) shape {
	return shape{reach: 0.32, turns: 3, span: 0.3, at: func(x, y float64) sample {
		r, a := math.Hypot(x, y), math.Atan2(y, x)
		d := r - 0.27 - 0.007*math.Sin(42*a)
		return plain(d, bevel(r-0.255, 0.04, 0.15)-0.02*math.Max(0, 1-math.Abs(r-0.17)/0.012), c)
	}}
}

const stainAlpha = 0.45

func distractors() []distractor {
	return []distractor{
		{leafShape(11, rgb{0.3, 0.36, 0.12}), false, false, 1},
		{leafShape(12, rgb{0.45, 0.27, 0.1}), false, false, 1.2},
		{woodScrewShape(), false, false, 1},
		{pebbleShape(21), false, false, 0.9},
		{pebbleShape(22), false, false, 0.6},
		{paperShape(31), true, false, 1.4},
		{stainShape(41), true, true, 1.6},
		{stainShape(42), true, true, 2.4},
		{cableShape(51, rgb{0.5, 0.08, 0.07}), false, false, 2.6},
		{cableShape(52, rgb{0.07, 0.07, 0.08}), false, false, 2.2},
		{capShape(rgb{0.1, 0.3, 0.5}), false, false, 1},
		{capShape(rgb{0.6, 0.6, 0.58}), false, false, 1.1},
	}
}
