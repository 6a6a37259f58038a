package zone

import (
	"errors"
	"fmt"
	"math"
)

// Ground gives the picture a scale: four points on the ground that are the corners of a rectangle in the real world, in order around it,
// and its real sides. Speeds are measured with it.
type Ground struct {
	Points []Point `json:"points" yaml:"points"`
	// Width is the real distance from the first point to the second, Length from the second to the third, in metres.
	Width  float64 `json:"width" yaml:"width"`
	Length float64 `json:"length" yaml:"length"`
}

// plane maps picture points to metres on the ground.
type plane [8]float64

func (g *Ground) check() error {
	if len(g.Points) != 4 {
		return fmt.Errorf("needs 4 points, has %d", len(g.Points))
	}
	const longest = 1e5
	if !(g.Width > 0 && g.Width <= longest && g.Length > 0 && g.Length <= longest) {
		return fmt.Errorf("needs a width and a length in metres over 0 and at most %g, has %v and %v", longest, g.Width, g.Length)
	}
	return nil
}

// newPlane solves the eight equations of the projection that takes the corners to (0,0), (w,0), (w,l), (0,l).
func newPlane(corners polygon, width, length float64) (*plane, error) {
	if !corners.convex() {
		return nil, errors.New("the four points must be the corners of a convex quadrangle")
	}
	to := [4]Point{{0, 0}, {width, 0}, {width, length}, {0, length}}
	// Picture coordinates near 1 keep the equations well conditioned.
	scale := 0.0
	for _, c := range corners {
		scale = max(scale, math.Abs(c.X), math.Abs(c.Y))
	}
	var m [8][9]float64
	for i, c := range corners {
		x, y := c.X/scale, c.Y/scale
		m[2*i] = [9]float64{x, y, 1, 0, 0, 0, -to[i].X * x, -to[i].X * y, to[i].X}
		m[2*i+1] = [9]float64{0, 0, 0, x, y, 1, -to[i].Y * x, -to[i].Y * y, to[i].Y}
	}
	for column := range 8 {
		pivot := column
		for row := column; row < 8; row++ {
			if math.Abs(m[row][column]) > math.Abs(m[pivot][column]) {
				pivot = row
			}
		}
		const tiny = 1e-9
		if math.Abs(m[pivot][column]) < tiny {
			return nil, errors.New("the four points lie too close to a straight line")
		}
		m[column], m[pivot] = m[pivot], m[column]
		for row := range 8 {
			if row == column {
				continue
			}
			f := m[row][column] / m[column][column]
			for k := column; k < 9; k++ {
				m[row][k] -= f * m[column][k]
			}
		}
	}
	p := &plane{}
	for i := range p {
		p[i] = m[i][8] / m[i][i]
	}
	for _, i := range [...]int{0, 1, 3, 4, 6, 7} {
		p[i] /= scale
	}
	return p, nil
}

// at is the place on the ground in metres; ok is false at and above the horizon.
func (p *plane) at(q Point) (place Point, ok bool) {
	w := p[6]*q.X + p[7]*q.Y + 1
	if w <= 1e-6 {
		return Point{}, false
	}
	return Point{(p[0]*q.X + p[1]*q.Y + p[2]) / w, (p[3]*q.X + p[4]*q.Y + p[5]) / w}, true
}
