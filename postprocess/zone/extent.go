package zone

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// inside reports whether a detected object is in a zone, by its anchor or by the share of its box or mask.
func (a *Analytics) inside(o *objectState, z *area, f *postprocess.Detection) bool {
	if !z.anchor.isArea() {
		return z.outline.contains(o.anchorPoint(z.anchor, f))
	}
	if b := &z.bounds; f.X1 >= b.X2 || f.X2 <= b.X1 || f.Y1 >= b.Y2 || f.Y2 <= b.Y1 {
		return false
	}
	share, known := 0.0, false
	if z.anchor == MaskArea && f.Detail != nil && f.Detail.Mask != nil {
		share, known = a.maskShare(f.Detail.Mask, z.outline)
	}
	if !known {
		share = a.boxShare(f.Box, z.outline)
	}
	return share > 0 && share >= z.minShare
}

// bounds returns the bounding box of an outline.
func (g polygon) bounds() postprocess.Box {
	b := postprocess.Box{X1: math.MaxFloat32, Y1: math.MaxFloat32, X2: -math.MaxFloat32, Y2: -math.MaxFloat32}
	for _, p := range g {
		b.X1, b.Y1 = min(b.X1, float32(p.X)), min(b.Y1, float32(p.Y))
		b.X2, b.Y2 = max(b.X2, float32(p.X)), max(b.Y2, float32(p.Y))
	}
	return b
}

// boxShare returns the share of a box inside an outline, 0 to 1. It clips the outline at each side of the box in turn (Sutherland and
// Hodgman, "Reentrant polygon clipping", Communications of the ACM 17, 1974). Where that connects parts of a concave outline by a seam, the
// seam encloses no area.
func (a *Analytics) boxShare(b postprocess.Box, outline polygon) float64 {
	whole := float64(b.Width()) * float64(b.Height())
	if !(whole > 0) || !finite(whole) {
		return 0
	}
	a.clipped[0] = append(a.clipped[0][:0], outline...)
	for side := range 4 {
		from, to := a.clipped[side%2], a.clipped[(side+1)%2][:0]
		depth := func(p Point) float64 { // distance to the side, positive inside
			return [4]float64{p.X - float64(b.X1), float64(b.X2) - p.X, p.Y - float64(b.Y1), float64(b.Y2) - p.Y}[side]
		}
		for i, p := range from {
			q := from[(i+len(from)-1)%len(from)]
			in, before := depth(p), depth(q)
			if (in >= 0) != (before >= 0) {
				t := before / (before - in)
				to = append(to, Point{q.X + t*(p.X-q.X), q.Y + t*(p.Y-q.Y)})
			}
			if in >= 0 {
				to = append(to, p)
			}
		}
		a.clipped[(side+1)%2] = to
	}
	return min(a.clipped[0].area()/whole, 1)
}

// maskShare returns the share of a mask's pixels whose centres are inside an outline; known is false for an empty mask.
func (a *Analytics) maskShare(m *postprocess.Mask, outline polygon) (share float64, known bool) {
	a.runs = m.AppendRuns(a.runs[:0], a.Width, a.Height)
	all := 0
	within := 0
	at := 0
	column := -1
	for i, length := range a.runs {
		from, to := at, at+int(length)
		at = to
		if i%2 == 0 {
			continue
		}
		all += to - from
		for from < to { // a run may continue in the next column
			x := from / a.Height
			end := min(to, (x+1)*a.Height)
			if x != column {
				column = x
				a.crossings = outline.crossings(a.crossings[:0], float64(x)+0.5)
			}
			within += countBetween(a.crossings, from-x*a.Height, end-x*a.Height)
			from = end
		}
	}
	if all == 0 {
		return 0, false
	}
	return float64(within) / float64(all), true
}

// crossings appends the y coordinates where a vertical line meets the outline, in ascending order. The inside lies between the first and
// the second, the third and the fourth, and so on.
func (g polygon) crossings(dst []float64, x float64) []float64 {
	for i, j := 0, len(g)-1; i < len(g); j, i = i, i+1 {
		p, q := g[i], g[j]
		if (p.X > x) != (q.X > x) {
			dst = append(dst, p.Y+(x-p.X)/(q.X-p.X)*(q.Y-p.Y))
		}
	}
	slices.Sort(dst)
	return dst
}

// countBetween counts the pixels in rows from <= row < to whose centres are inside.
func countBetween(crossings []float64, from, to int) (count int) {
	for i := 0; i+1 < len(crossings); i += 2 {
		first, last := int(math.Ceil(crossings[i]-0.5)), int(math.Ceil(crossings[i+1]-0.5))
		count += max(0, min(to, last)-max(from, first))
	}
	return count
}
