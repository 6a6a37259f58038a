package postprocess

import "math"

// Point is a position on the source image in pixels.
type Point struct{ X, Y float32 }

// Corners returns the corners in order; at angle 0 the first is the bottom right one.
func (o *OrientedBox) Corners() [4]Point {
	sin, cos := math.Sincos(float64(o.Angle))
	ux, uy := float32(cos)*o.Width/2, float32(sin)*o.Width/2
	vx, vy := -float32(sin)*o.Height/2, float32(cos)*o.Height/2
	return [4]Point{
		{o.X + ux + vx, o.Y + uy + vy}, {o.X + ux - vx, o.Y + uy - vy}, {o.X - ux - vx, o.Y - uy - vy}, {o.X - ux + vx, o.Y - uy + vy},
	}
}

// Bounds returns the smallest axis-aligned box around the rectangle.
func (o *OrientedBox) Bounds() Box {
	sin, cos := math.Sincos(float64(o.Angle))
	s, c := float32(math.Abs(sin)), float32(math.Abs(cos))
	width, height := (c*o.Width+s*o.Height)/2, (s*o.Width+c*o.Height)/2
	return Box{o.X - width, o.Y - height, o.X + width, o.Y + height}
}

// Gaussian is an oriented box as the normal distribution with its centre as mean and the covariance of a uniform distribution over it:
// "Gaussian Bounding Boxes and Probabilistic Intersection-over-Union for Object Detection", Llerena et al., 2021 (arXiv 2106.06072).
type Gaussian struct {
	x, y       float64
	xx, yy, xy float64 // covariance
	det        float64
	longest    float64 // the larger variance along a side
}

// Gaussian returns the normal distribution of the rectangle.
func (o *OrientedBox) Gaussian() Gaussian {
	sin, cos := math.Sincos(float64(o.Angle))
	along, across := float64(o.Width)*float64(o.Width)/12, float64(o.Height)*float64(o.Height)/12
	return Gaussian{
		x: float64(o.X), y: float64(o.Y),
		xx: along*cos*cos + across*sin*sin, yy: along*sin*sin + across*cos*cos, xy: (along - across) * sin * cos,
		det: along * across, longest: max(along, across),
	}
}

// ProbIoU returns the probabilistic IoU, 1 minus the Hellinger distance of the two distributions, 0 to 1. For rectangles of equal size it
// orders overlaps much like IoU, but is larger for small overlaps.
func (g *Gaussian) ProbIoU(other *Gaussian) float64 {
	const least, most = 1e-7, 100
	distance := min(max(g.bhattacharyya(other), least), most)
	return 1 - math.Sqrt(1-math.Exp(-distance))
}

// bhattacharyya returns the Bhattacharyya distance; NaN or infinite for rectangles without area.
func (g *Gaussian) bhattacharyya(other *Gaussian) float64 {
	xx, yy, xy := (g.xx+other.xx)/2, (g.yy+other.yy)/2, (g.xy+other.xy)/2
	dx, dy := g.x-other.x, g.y-other.y
	det := xx*yy - xy*xy
	return (yy*dx*dx+xx*dy*dy-2*xy*dx*dy)/(8*det) + math.Log(det/math.Sqrt(g.det*other.det))/2
}

// OverlapTest tests whether the probabilistic IoU of two boxes exceeds a limit, at less cost than computing it.
type OverlapTest struct{ distance float64 }

// NewOverlapTest returns the test for a limit between 0 and 1.
func NewOverlapTest(limit float32) OverlapTest {
	hellinger := 1 - float64(limit)
	return OverlapTest{-math.Log(1 - hellinger*hellinger)}
}

// Exceeds reports whether the probabilistic IoU of a and b exceeds the limit.
func (c OverlapTest) Exceeds(a, b *Gaussian) bool {
	// Bounds the first term of the distance from below, with both variances as large as along the longest side.
	dx, dy := a.x-b.x, a.y-b.y
	if dx*dx+dy*dy > 4*c.distance*(a.longest+b.longest) {
		return false
	}
	return a.bhattacharyya(b) < c.distance
}
