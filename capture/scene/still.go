package scene

import "math"

// studio renders independent images for training and evaluation: each has its own belt, light, camera and parts. One goroutine may use it;
// the catalogue may be shared.
type studio struct {
	catalogue *catalogue
	canvas    canvas
	width     int
	height    int
	part      float64 // size of the parts in pixels; 0 for one that fits the image and varies
	pixels    []byte  // BGR, valid until the next shot
}

func newStudio(c *catalogue, width, height int) *studio {
	return &studio{catalogue: c, canvas: newCanvas(width, height), width: width, height: height, pixels: make([]byte, 3*width*height)}
}

// Variation between the images of a dataset.
const (
	smallest, largest = 0.5, 2.0 // size of the parts relative to the stream's
	crowd             = 14       // maximum number of parts per image
)

// shot renders image number n of the seed into s.pixels and returns its ground truth; part IDs count from 1 on each image.
func (s *studio) shot(seed, n uint64) []Part {
	r := seeded(seed, 5, n)
	unit := float64(min(s.width, s.height)) / unitsAcross * r.between(smallest, largest)
	if s.part > 0 {
		unit = s.part
	}
	lamp := newLight(r.between(-math.Pi, math.Pi), r.between(0.6, 1.35))
	warm := r.between(-0.12, 0.12)
	lamp.colour = rgb{1 + warm, 1 + r.between(-0.03, 0.03), 1 - warm}
	lamp.ambient, lamp.shadow, lamp.softness = r.between(0.25, 0.55), r.between(0.2, 0.75), r.between(0.015, 0.09)
	blur := 0
	if r.chance(0.6) {
		blur = r.intn(1 + int(0.05*unit))
	}
	s.background(&r, unit, blur, lamp.colour)
	s.canvas.reset()
	stride := 3 * s.width
	anywhere := func() (float64, float64) {
		return r.float() * float64(s.width), r.float() * float64(s.height)
	}
	dim := r.between(0.85, 1.15)
	// One metal lot or a mix.
	lot, mixed := metals()[r.intn(len(metals()))], r.chance(0.6)
	tint := func() rgb {
		t := lot
		if mixed {
			t = metals()[r.intn(len(metals()))]
		}
		return t.scaled(r.between(0.8, 1.05))
	}
	id := int64(0)
	put := func(m *surface, scale, x, y float64, class Class) {
		m = m.near(unit * scale)
		p := pose{unit: unit * scale, angle: r.between(0, 2*math.Pi), blur: blur, tint: tint(), dim: dim}
		id++
		sprite := render(m, p, lamp)
		s.canvas.lay(s.pixels, stride, placed{
			sprite: sprite, x: int(math.Round(x)) - sprite.originX, y: int(math.Round(y)) - sprite.originY, id: id, class: class,
		})
	}
	clutter := r.intn(4)
	for range clutter {
		k := r.intn(len(s.catalogue.kinds))
		if s.catalogue.kinds[k].flat {
			x, y := anywhere()
			put(s.catalogue.distractors[k], math.Min(2, s.catalogue.kinds[k].scale*r.between(0.7, 1.3)), x, y, classes)
		}
	}
	// No more parts than the image holds at about half its area.
	room := float64(s.width*s.height) / (unit * unit)
	count := min(r.intn(crowd+1), int(0.75*room))
	x, y := anywhere()
	for i := range count {
		if i == 0 || !r.chance(0.1) {
			x, y = s.clearing(anywhere, unit)
		} else {
			a := r.between(0, 2*math.Pi)
			x, y = x+0.6*unit*math.Cos(a), y+0.6*unit*math.Sin(a)
		}
		class := Class(r.intn(int(classes)))
		variants := s.catalogue.parts[class]
		put(variants[r.intn(len(variants))], r.between(0.92, 1.08), x, y, class)
		if r.chance(0.06) {
			if k := r.intn(len(s.catalogue.kinds)); !s.catalogue.kinds[k].flat {
				cx, cy := anywhere()
				put(s.catalogue.distractors[k], math.Min(2.5, s.catalogue.kinds[k].scale*r.between(0.8, 1.2)), cx, cy, classes)
			}
		}
	}
	if r.chance(0.4) {
		for range 1 + r.intn(2) {
			k := r.intn(len(s.catalogue.kinds))
			x, y := anywhere()
			put(s.catalogue.distractors[k], math.Min(2.5, s.catalogue.kinds[k].scale*r.between(0.8, 1.2)), x, y, classes)
		}
	}
	e := newExposure(s.width, s.height, 1<<11, r.between(0.3, 5), r.between(0, 0.3), seed^n)
	e.develop(s.pixels, stride, r.between(0.7, 1.1), r.between(0, 2*math.Pi), seeded(seed, 6, n))
	return s.canvas.truth(nil)
}

// clearing returns a position away from the other parts; on a crowded image any position.
func (s *studio) clearing(anywhere func() (float64, float64), unit float64) (float64, float64) {
	var x, y float64
	for range 12 {
		x, y = anywhere()
		free := true
		for _, p := range s.canvas.items {
			dx, dy := x-float64(p.x+p.sprite.originX), y-float64(p.y+p.sprite.originY)
			if p.class != classes && dx*dx+dy*dy < 0.85*unit*unit {
				free = false
				break
			}
		}
		if free {
			break
		}
	}
	return x, y
}

// background draws a belt or a table, with rails on some images.
func (s *studio) background(r *random, unit float64, blur int, cast rgb) {
	g := ground{
		colour: rgb{0.235, 0.27, 0.275}, pattern: pattern(r.intn(int(patterns))), pitch: r.between(0.04, 0.35) * unit,
		depth: r.between(0, 0.14), grain: r.between(0, 0.14), blotch: r.between(0, 0.2), scratch: r.intn(40),
	}
	g.pitch = math.Max(3, g.pitch)
	switch r.intn(6) {
	case 0, 1:
		g.colour = g.colour.scaled(r.between(0.35, 1.4))
	case 2: // any grey
		v := r.between(0.08, 0.85)
		g.colour = rgb{v, v * r.between(0.93, 1.04), v * r.between(0.9, 1.05)}
	case 3: // green or blue belt
		g.colour = rgb{r.between(0.03, 0.3), r.between(0.15, 0.5), r.between(0.15, 0.55)}
	case 4: // wood, cardboard
		v := r.between(0.3, 0.75)
		g.colour = rgb{v, v * r.between(0.75, 0.9), v * r.between(0.5, 0.75)}
	case 5:
		g.colour = rgb{r.between(0.05, 0.7), r.between(0.05, 0.7), r.between(0.05, 0.7)}
	}
	period := min(s.width, max(64, int(4*unit)))
	texture := g.belt(period, s.height, unit, blur, cast, r.next())
	if r.chance(0.5) {
		shadeEdges(texture, period, s.height, unit)
	}
	for y := range s.height {
		row := s.pixels[3*y*s.width:][:3*s.width]
		for n := 0; n < len(row); {
			n += copy(row[n:], texture[3*y*period:][:3*period])
		}
	}
	if r.chance(0.4) {
		high := int(r.between(0.2, 0.6) * unit)
		copy(s.pixels, rail(s.width, high, false, cast, r.next()))
		copy(s.pixels[3*s.width*(s.height-high):], rail(s.width, high, true, cast, r.next()))
	}
}
