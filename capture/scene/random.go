package scene

import "math"

// random is the splitmix64 generator of Steele, Lea and Flood (2014). It is a value: each part of a scene uses a generator derived from the
// scene's seed and the part's number, so no state is carried from frame to frame.
type random uint64

// seeded mixes the keys into the seed of an independent stream.
func seeded(keys ...uint64) random {
	r := random(0x9e3779b97f4a7c15)
	for _, k := range keys {
		r ^= random(k)
		r = random(r.next())
	}
	return r
}

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float is uniform in [0, 1).
func (r *random) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// between is uniform in [a, b).
func (r *random) between(a, b float64) float64 { return a + (b-a)*r.float() }

// intn is uniform in [0, n).
func (r *random) intn(n int) int { return int(r.next() % uint64(n)) }

// chance is true with probability p.
func (r *random) chance(p float64) bool { return r.float() < p }

// normal is standard normal, by Box and Muller.
func (r *random) normal() float64 {
	return math.Sqrt(-2*math.Log(1-r.float())) * math.Cos(2*math.Pi*r.float())
}

// lattice is value noise in [-1, 1] with period px, py cells: smooth between random values at whole coordinates.
func lattice(seed uint64, x, y float64, px, py int) float64 {
	fx, fy := math.Floor(x), math.Floor(y)
	tx, ty := x-fx, y-fy
	tx, ty = tx*tx*(3-2*tx), ty*ty*(3-2*ty)
	x0, y0 := wrap(int(fx), px), wrap(int(fy), py)
	x1, y1 := wrap(x0+1, px), wrap(y0+1, py)
	top := knot(seed, x0, y0)*(1-tx) + knot(seed, x1, y0)*tx
	low := knot(seed, x0, y1)*(1-tx) + knot(seed, x1, y1)*tx
	return top*(1-ty) + low*ty
}

func knot(seed uint64, x, y int) float64 {
	r := random(seed ^ uint64(x)*0x9e3779b97f4a7c15 ^ uint64(y)*0xc2b2ae3d27d4eb4f)
	return float64(int64(r.next())) / (1 << 63)
}

func wrap(i, n int) int {
	i %= n
	if i < 0 {
		i += n
	}
	return i
}
