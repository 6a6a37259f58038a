package simulation

import (
	"math"
	"math/rand/v2"
)

// The square is in front of the camera: from nearest to farthest metres away, slightly wider than the image.
const (
	// metres from the camera
	nearest, farthest = 7.0, 24.0
	breadth           = 0.95 // metres to either side per metre of distance
	tick              = 1.0 / 30
)

// walker walks from one place to the next at its own pace, avoids others and pauses at times.
type walker struct {
	x, z, vx, vz     float64 // metres, metres per second
	aimX, aimZ, pace float64
	waits            float64 // seconds
	height, girth    float64 // metres
	gait             float64 // phase of the steps
}

type square struct {
	random  *rand.Rand
	walkers []walker
	at      float64 // seconds
}

func newSquare(random *rand.Rand, people int) *square {
	q := &square{random: random, walkers: make([]walker, people)}
	for i := range q.walkers {
		w := &q.walkers[i]
		w.x, w.z = q.place()
		w.aimX, w.aimZ = q.place()
		w.pace = 0.7 + 0.9*random.Float64()
		w.height, w.girth = 1.55+0.35*random.Float64(), 0.45+0.2*random.Float64()
		w.gait = random.Float64()
	}
	return q
}

func (q *square) place() (x, z float64) {
	z = nearest + (farthest-nearest)*q.random.Float64()
	return (2*q.random.Float64() - 1) * breadth * z, z
}

// width varies with the swing of legs and arms.
func (w *walker) width(at float64) float64 {
	swing := 0.15 * math.Min(1, math.Hypot(w.vx, w.vz))
	return w.girth * (1 + swing*math.Sin(2*math.Pi*(1.8*at+w.gait)))
}

func (q *square) step() {
	const (
		ease   = 3.0 // how fast a pace is taken up, 1/s
		near   = 0.9 // metres from which people give way
		push   = 2.5
		pauses = 0.3 // share of the aims at which somebody stands for a while
	)
	q.at += tick
	for i := range q.walkers {
		w := &q.walkers[i]
		w.waits -= tick
		if w.waits > 0 {
			w.vx, w.vz = w.vx*(1-ease*tick), w.vz*(1-ease*tick)
		} else {
			dx, dz := w.aimX-w.x, w.aimZ-w.z
			way := math.Hypot(dx, dz)
			if way < 0.5 {
				w.aimX, w.aimZ = q.place()
				if q.random.Float64() < pauses {
					w.waits = 0.5 + 2.5*q.random.Float64()
				}
				continue
			}
			w.vx += ease * tick * (w.pace*dx/way - w.vx)
			w.vz += ease * tick * (w.pace*dz/way - w.vz)
		}
		for j := range q.walkers {
			o := &q.walkers[j]
			dx, dz := w.x-o.x, w.z-o.z
			if d := math.Hypot(dx, dz); i != j && d < near && d > 0 {
				w.vx += push * tick * (near - d) / near * (dx - 0.5*dz) / d // to the side rather than back
				w.vz += push * tick * (near - d) / near * (dz + 0.5*dx) / d
			}
		}
		w.vx += 0.15 * math.Sqrt(tick) * q.random.NormFloat64()
		w.vz += 0.15 * math.Sqrt(tick) * q.random.NormFloat64()
	}
	for i := range q.walkers {
		w := &q.walkers[i]
		w.x, w.z = w.x+w.vx*tick, max(nearest-1, w.z+w.vz*tick)
	}
}
