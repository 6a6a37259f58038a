package zone

import (
	"errors"
	"fmt"
	"math"
)

// Ground calibrates the image for measuring speeds, directions and distances. Either four points on the ground are the corners of a real
// rectangle of known size, in order around it; or, for a camera that looks straight down, two points are the ends of a known length.
type Ground struct {
	Points []Point `json:"points" yaml:"points"`
	// Width is the distance from the first point to the second, Length from the second to the third, in metres. With two points, Length is
	// their distance and Width is 0.
	Width  float64 `json:"width" yaml:"width,omitempty"`
	Length float64 `json:"length" yaml:"length"`
}

// plane maps image points to metres on the ground (homography).
type plane [8]float64

func (g *Ground) check() error {
	const longest = 1e5
	switch len(g.Points) {
	case 2:
		if g.Width != 0 || !(g.Length > 0 && g.Length <= longest) {
			return fmt.Errorf("two points need no width and a length in metres over 0 and at most %g, have %v and %v", longest, g.Width, g.Length)
		}
		return nil
	case 4:
	default:
		return fmt.Errorf("needs 4 points, or 2 at the ends of a known length; has %d", len(g.Points))
	}
	if !(g.Width > 0 && g.Width <= longest && g.Length > 0 && g.Length <= longest) {
		return fmt.Errorf("needs a width and a length in metres over 0 and at most %g, has %v and %v", longest, g.Width, g.Length)
	}
	return nil
}

// plane returns the mapping for validated points on an image.
func (g *Ground) plane(points polygon) (*plane, error) {
	if len(points) == 2 {
		return newScale(points[0], points[1], g.Length)
	}
	return newPlane(points, g.Width, g.Length)
}

// newScale returns the plane of an image taken from straight above: the first axis points from one point to the other.
func newScale(from, to Point, length float64) (*plane, error) {
	along := to.minus(from)
	distance := math.Hypot(along.X, along.Y)
	if distance == 0 {
		return nil, errors.New("both ends of the known length are the same point")
	}
	// Unit vector along the length, in metres per pixel.
	x, y := along.X/distance*length/distance, along.Y/distance*length/distance
	return &plane{x, y, -x*from.X - y*from.Y, -y, x, y*from.X - x*from.Y, 0, 0}, nil
}

// newPlane solves the eight equations of the homography that maps the corners to (0,0), (w,0), (w,l), (0,l).
func newPlane(corners polygon, width, length float64) (*plane, error) {
	if !corners.convex() {
		return nil, errors.New("the four points must be the corners of a convex quadrangle")
	}
	to := [4]Point{{0, 0}, {width, 0}, {width, length}, {0, length}}
	// Image coordinates near 1 keep the equations well conditioned.
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

// toGround returns the position on the ground in metres; ok is false at and above the horizon.
func (p *plane) toGround(q Point) (place Point, ok bool) {
	w := p[6]*q.X + p[7]*q.Y + 1
	if w <= 1e-6 {
		return Point{}, false
	}
	return Point{(p[0]*q.X + p[1]*q.Y + p[2]) / w, (p[3]*q.X + p[4]*q.Y + p[5]) / w}, true
}
