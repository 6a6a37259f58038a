package motion

import (
	"math"
	"slices"
)

// fit finds the affine map that most corners agree with, by iteratively reweighted least squares (Geman and McClure).
func fit(corners []corner) (Affine, bool) {
	if len(corners) < minCorners {
		return Affine{}, false
	}
	m := Affine{A: 1, E: 1, C: median(corners, func(k *corner) float64 { return k.toX - k.x })}
	m.F = median(corners, func(k *corner) float64 { return k.toY - k.y })
	const rounds, sharpest = 10, 0.2 // small pixels
	scale := 3.0
	for range rounds {
		for i := range corners {
			k := &corners[i]
			k.weight = 1 / (1 + square(m.off(k)/scale))
			k.weight *= k.weight
		}
		next, ok := leastSquares(corners)
		if !ok {
			return Affine{}, false
		}
		m = next
		scale = max(sharpest, scale*0.6)
	}
	with := 0
	for i := range corners {
		if m.off(&corners[i]) < 4*sharpest {
			with++
		}
	}
	return m, with >= minCorners && float64(with) >= minAgreement*float64(len(corners))
}

// off returns the distance of a corner from its mapped position.
func (m *Affine) off(k *corner) float64 {
	return math.Hypot(m.A*k.x+m.B*k.y+m.C-k.toX, m.D*k.x+m.E*k.y+m.F-k.toY)
}

// median returns the median of value over the corners. It uses the corners' off.
func median(corners []corner, value func(*corner) float64) float64 {
	for i := range corners {
		corners[i].off = value(&corners[i])
	}
	slices.SortFunc(corners, func(a, b corner) int {
		switch {
		case a.off < b.off:
			return -1
		case a.off > b.off:
			return 1
		}
		return 0
	})
	return corners[len(corners)/2].off
}

// leastSquares fits with the corners' weights, relative to their mean to keep the sums small.
func leastSquares(corners []corner) (Affine, bool) {
	var n, x, y, u, v float64
	for i := range corners {
		k := &corners[i]
		n += k.weight
		x += k.weight * k.x
		y += k.weight * k.y
		u += k.weight * k.toX
		v += k.weight * k.toY
	}
	x /= n
	y /= n
	u /= n
	v /= n
	var xx, xy, yy, xu, yu, xv, yv float64
	for i := range corners {
		k := &corners[i]
		a, b := k.x-x, k.y-y
		s, t := k.weight*(k.toX-u), k.weight*(k.toY-v)
		xx, xy, yy = xx+k.weight*a*a, xy+k.weight*a*b, yy+k.weight*b*b
		xu += a * s
		yu += b * s
		xv += a * t
		yv += b * t
	}
	determinant := xx*yy - xy*xy
	if !(determinant > 1e-3*xx*yy) { // all corners are collinear or have no weight
		return Affine{}, false
	}
	m := Affine{
		A: (yy*xu - xy*yu) / determinant, B: (xx*yu - xy*xu) / determinant,
		D: (yy*xv - xy*yv) / determinant, E: (xx*yv - xy*xv) / determinant,
	}
	m.C, m.F = u-m.A*x-m.B*y, v-m.D*x-m.E*y
	return m, true
}

func square(v float64) float64 { return v * v }
