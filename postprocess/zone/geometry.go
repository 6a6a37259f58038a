package zone

import "math"

// Point is a position on the image: shares of its sides or pixels in a configuration, always source pixels in results.
type Point struct {
	X float64 `json:"x" yaml:"x"`
	Y float64 `json:"y" yaml:"y"`
}

func (p Point) minus(q Point) Point { return Point{p.X - q.X, p.Y - q.Y} }

func (p Point) distance(q Point) float64 { return math.Hypot(p.X-q.X, p.Y-q.Y) }

// cross is positive if q is clockwise from p on an image, whose y axis points down.
func (p Point) cross(q Point) float64 { return p.X*q.Y - p.Y*q.X }

func (p Point) dot(q Point) float64 { return p.X*q.X + p.Y*q.Y }

// polygon is a closed outline; the first corner is not repeated.
type polygon []Point

// contains reports whether the point is inside, by the number of edges that a ray to the left meets.
func (g polygon) contains(p Point) bool {
	inside := false
	for i, j := 0, len(g)-1; i < len(g); j, i = i, i+1 {
		a, b := g[i], g[j]
		if (a.Y > p.Y) != (b.Y > p.Y) && p.X > a.X+(p.Y-a.Y)/(b.Y-a.Y)*(b.X-a.X) {
			inside = !inside
		}
	}
	return inside
}

// area returns the enclosed area, 0 for collinear corners.
func (g polygon) area() float64 {
	sum := 0.0
	for i, j := 0, len(g)-1; i < len(g); j, i = i, i+1 {
		sum += g[j].cross(g[i])
	}
	return math.Abs(sum) / 2
}

// convex reports whether all corners turn the same way.
func (g polygon) convex() bool {
	left, right := false, false
	for i := range g {
		a, b, c := g[i], g[(i+1)%len(g)], g[(i+2)%len(g)]
		turn := b.minus(a).cross(c.minus(b))
		left, right = left || turn <= 0, right || turn >= 0
	}
	return left != right
}

// selfIntersection returns two edges that touch without being neighbours, or neighbours that overlap, numbered from 1.
func (g polygon) selfIntersection() (first, second int, crossing bool) {
	n := len(g)
	for i := range n {
		for j := i + 1; j < n; j++ {
			a, b := g[i], g[(i+1)%n]
			c, d := g[j], g[(j+1)%n]
			switch {
			case j == i+1:
				// The shared corner is not a crossing, but folding back over the edge is.
				if foldsBack(a, b, d) {
					return i + 1, j + 1, true
				}
			case i == 0 && j == n-1:
				if foldsBack(c, d, b) {
					return i + 1, j + 1, true
				}
			case intersect(a, b, c, d):
				return i + 1, j + 1, true
			}
		}
	}
	return 0, 0, false
}

// foldsBack reports whether the path from a to c reverses at b.
func foldsBack(a, b, c Point) bool {
	one, two := b.minus(a), c.minus(b)
	return one.cross(two) == 0 && one.dot(two) <= 0
}

// intersect reports whether the segments a-b and c-d have a common point.
func intersect(a, b, c, d Point) bool {
	o1, o2 := b.minus(a).cross(c.minus(a)), b.minus(a).cross(d.minus(a))
	o3, o4 := d.minus(c).cross(a.minus(c)), d.minus(c).cross(b.minus(c))
	if ((o1 > 0 && o2 < 0) || (o1 < 0 && o2 > 0)) && ((o3 > 0 && o4 < 0) || (o3 < 0 && o4 > 0)) {
		return true
	}
	return o1 == 0 && onSegment(a, b, c) || o2 == 0 && onSegment(a, b, d) || o3 == 0 && onSegment(c, d, a) || o4 == 0 && onSegment(c, d, b)
}

// onSegment reports whether p, which is collinear with a and b, lies between them.
func onSegment(a, b, p Point) bool {
	return min(a.X, b.X) <= p.X && p.X <= max(a.X, b.X) && min(a.Y, b.Y) <= p.Y && p.Y <= max(a.Y, b.Y)
}
