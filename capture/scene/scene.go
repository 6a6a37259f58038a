// Package scene renders the demo camera: a conveyor belt with metal parts and exact ground truth for every part. It also writes training
// images of the same kind. It is plain Go; on one processor architecture the same seed always gives the same pixels.
package scene

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
)

// Scene is a belt that moves past a camera. Set the exported fields, Open it, then Draw any frame in any order. One goroutine at a time may
// use it; several scenes are independent. It only holds memory and need not be closed.
type Scene struct {
	Width, Height int     // pixels, 64 to 8192
	Rate          float64 // frames per second, 0 means 30; the belt's speed does not depend on it
	Seed          uint64

	// Set by Open, read by Draw.
	unit      float64 // pixels of one part size
	speed     float64 // pixels of belt per frame
	cell      int     // pixels of a stretch of belt that is filled from one generator
	lanes     int
	railed    int // height of one side rail
	start     int // belt position of the image's left edge at frame 0
	texture   []byte
	period    int
	rails     [2][]byte
	sprites   [classes][][]*sprite // by class, variant and rotation
	clutter   [][]*sprite
	kinds     []distractor
	canvas    canvas
	exposure  exposure
	phase     float64
	reachable int // cells beyond the image's edge whose sprites can reach into it
}

// MinSide and MaxSide are the shortest and the longest side of an image, in pixels.
const (
	MinSide = 64
	MaxSide = 8192
)

// Parts measure about one unit; this many units fit the shorter side of an image.
const unitsAcross = 5

// largestUnit bounds the memory of sprites: images over 4K show more parts instead of larger ones.
const largestUnit = 432

const (
	beltSpeed = 1.3  // units per second
	shutter   = 0.35 // share of a frame's time
	variants  = 2    // of each class on one belt
	strays    = 6    // kinds of distractors on one belt
)

func checkSides(width, height int) error {
	if width < MinSide || height < MinSide || width > MaxSide || height > MaxSide {
		return fmt.Errorf("image of %dx%d, sides must be %d to %d pixels", width, height, MinSide, MaxSide)
	}
	return nil
}

// Open renders the parts in all rotations, which takes seconds of CPU time at 1280x720, and allocates what Draw needs. Calling it again
// restarts.
func (s *Scene) Open() error {
	if err := checkSides(s.Width, s.Height); err != nil {
		return fmt.Errorf("open scene: %w", err)
	}
	rate := s.Rate
	if rate == 0 {
		rate = 30
	}
	if !(rate > 0 && rate <= 1000) {
		return fmt.Errorf("open scene: rate of %g fps, must be over 0 and at most 1000", s.Rate)
	}
	r := seeded(s.Seed, 1)
	s.unit = math.Min(largestUnit, float64(min(s.Width, s.Height))/unitsAcross)
	s.speed = beltSpeed * s.unit / rate
	s.cell = max(1, int(1.15*s.unit))
	s.railed = int(0.42 * s.unit)
	s.lanes = max(1, int(float64(s.Height-2*s.railed)/(1.05*s.unit)))
	s.reachable = 3
	s.start = (s.Width/s.cell + 2*s.reachable + 2) * s.cell
	s.phase = r.between(0, 2*math.Pi)
	blur := min(int(math.Round(s.speed*shutter)), int(0.06*s.unit))
	lamp := newLight(r.between(-2.6, -0.6), r.between(0.85, 1.05))
	belt := ground{colour: rgb{0.235, 0.27, 0.275}, pattern: woven, pitch: 0.062 * s.unit, depth: 0.1, grain: 0.09, blotch: 0.08, scratch: 30}
	s.period = int(math.Ceil(8 * s.unit))
	height := s.Height - 2*s.railed
	s.texture = belt.belt(s.period, height, s.unit, blur, white, s.Seed)
	shadeEdges(s.texture, s.period, height, s.unit)
	s.rails = [2][]byte{rail(s.Width, s.railed, false, white, s.Seed), rail(s.Width, s.railed, true, white, s.Seed+1)}
	s.render(lamp, blur, &r)
	s.canvas = newCanvas(s.Width, s.Height)
	s.exposure = newExposure(s.Width, s.Height, 1<<14, 2.2, 0.12, s.Seed)
	return nil
}

// shadeEdges darkens the belt at its rails.
func shadeEdges(texture []byte, width, height int, unit float64) {
	reach := int(0.35 * unit)
	for y := range height {
		away := min(y, height-1-y)
		if away >= reach {
			continue
		}
		t := float64(away) / float64(reach)
		k := 0.45 + 0.55*t*(2-t)
		line := texture[3*y*width:][:3*width]
		for i := range line {
			line[i] = byte(float64(line[i]) * k)
		}
	}
}

// metals returns the tints of the parts on a belt: steel, zinc, brass, black oxide.
func metals() []rgb {
	return []rgb{{0.86, 0.88, 0.92}, {0.95, 0.94, 0.86}, {0.95, 0.76, 0.36}, {0.4, 0.4, 0.43}}
}

// render fills sprites and clutter on all processors; the result does not depend on the order.
func (s *Scene) render(lamp light, blur int, r *random) {
	resolution := math.Min(256, math.Max(64, s.unit))
	shapes, tints := partShapes(), metals()
	s.kinds = distractors()
	for i := range s.kinds {
		k := i + r.intn(len(s.kinds)-i)
		s.kinds[i], s.kinds[k] = s.kinds[k], s.kinds[i]
	}
	s.kinds = s.kinds[:strays]
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	do := func(f func()) {
		slots <- struct{}{}
		work.Go(func() { f(); <-slots })
	}
	turned := func(shape shape, alpha, scale float64, tint rgb) []*sprite {
		turns := make([]*sprite, shape.turns)
		do(func() {
			m := newSurface(shape, resolution*math.Min(1, scale), alpha)
			for n := range turns {
				angle := shape.span * float64(n) / float64(len(turns))
				turns[n] = render(m, pose{unit: s.unit * scale, angle: angle, blur: blur, tint: tint, dim: 1}, lamp)
			}
		})
		return turns
	}
	for class := range s.sprites {
		s.sprites[class] = nil
		first := r.intn(len(shapes[class]))
		for v := range variants {
			shape := shapes[class][(first+v*(1+r.intn(len(shapes[class])-1)))%len(shapes[class])]
			tint := tints[0]
			if r.chance(0.5) {
				tint = tints[r.intn(len(tints))]
			}
			s.sprites[class] = append(s.sprites[class], turned(shape, 1, 1, tint))
		}
	}
	s.clutter = nil
	for _, d := range s.kinds {
		alpha := 1.0
		if d.stain {
			alpha = stainAlpha
		}
		s.clutter = append(s.clutter, turned(d.shape, alpha, math.Min(d.scale, 2), tints[r.intn(len(tints))]))
	}
	work.Wait()
}

// Draw renders frame number frame into dst as BGR with the given stride in bytes, and appends the ground truth of every part with at least
// one visible pixel. dst and truth belong to the caller. It allocates nothing if truth has room.
func (s *Scene) Draw(frame int, dst []byte, stride int, truth []Part) ([]Part, error) {
	switch {
	case s.texture == nil:
		return truth, errors.New("draw scene: not open")
	case frame < 0:
		return truth, fmt.Errorf("draw scene: frame number %d is negative", frame)
	case stride < 3*s.Width || len(dst) < stride*(s.Height-1)+3*s.Width:
		return truth, fmt.Errorf("draw scene: %d bytes with stride %d, an image of %dx%d needs %d with stride %d",
			len(dst), stride, s.Width, s.Height, 3*s.Width*s.Height, 3*s.Width)
	}
	position := s.start + int(math.Round(float64(frame)*s.speed))
	s.background(position, dst, stride)
	s.canvas.reset()
	// An object at belt position b is at x = position - b: the belt moves to the right.
	first, last := (position-s.Width)/s.cell-s.reachable, position/s.cell+s.reachable
	for _, flat := range [...]bool{true, false} {
		for cell := first; cell <= last; cell++ {
			s.fill(cell, position, flat, dst, stride)
		}
	}
	seconds := float64(frame) * s.speed / (beltSpeed * s.unit)
	gain := 0.93 + 0.05*math.Sin(seconds/2.7+s.phase) + 0.02*math.Sin(seconds*1.9)
	s.exposure.develop(dst, stride, gain, seconds/4+s.phase, seeded(s.Seed, 3, uint64(frame)))
	return s.canvas.truth(truth), nil
}

// background copies rails and belt.
func (s *Scene) background(position int, dst []byte, stride int) {
	shift := s.period - 1 - (position-1)%s.period // texture column of the image's left edge
	for y := range s.Height {
		row := dst[y*stride:][:3*s.Width]
		switch {
		case y < s.railed:
			copy(row, s.rails[0][3*y*s.Width:])
		case y >= s.Height-s.railed:
			copy(row, s.rails[1][3*(y-s.Height+s.railed)*s.Width:])
		default:
			line := s.texture[3*(y-s.railed)*s.period:][:3*s.period]
			for n := copy(row, line[3*shift:]); n < len(row); {
				n += copy(row[n:], line)
			}
		}
	}
}

// fill places the objects of one cell of the belt: flat ones in the first pass, the rest in the second.
func (s *Scene) fill(cell, position int, flat bool, dst []byte, stride int) {
	if cell < 0 {
		return
	}
	r := seeded(s.Seed, 2, uint64(cell))
	high := float64(s.Height - 2*s.railed)
	lane := high / float64(s.lanes)
	id := int64(cell) << 6
	put := func(turns []*sprite, x, y float64, class Class) {
		sprite := turns[r.intn(len(turns))]
		id++
		s.canvas.lay(dst, stride, placed{
			sprite: sprite, x: position - cell*s.cell - int(x) - sprite.originX, y: s.railed + int(y) - sprite.originY, id: id, class: class,
		})
	}
	length := float64(s.cell)
	if clutter := r.intn(len(s.clutter)); r.chance(0.22) {
		x, y := r.float()*length, r.between(0.1, 0.9)*high
		if s.kinds[clutter].flat == flat {
			put(s.clutter[clutter], x, y, classes)
		}
	}
	if flat {
		return
	}
	for n := range s.lanes {
		if !r.chance(0.36) {
			continue
		}
		x, y := length*r.between(0.1, 0.9), lane*(float64(n)+r.between(0.35, 0.65))
		pile := 1
		if r.chance(0.12) {
			pile = 2
		}
		for range pile {
			class := Class(r.intn(int(classes)))
			put(s.sprites[class][r.intn(variants)], x, y, class)
			sin, cos := math.Sincos(r.between(0, 2*math.Pi))
			x, y = x+0.6*s.unit*cos, y+0.6*s.unit*sin
		}
	}
}
