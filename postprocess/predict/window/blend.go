package window

import (
	"fmt"
	"math"
)

// Blend is the weighting of an element by its position in the window.
type Blend string

// The blends: a Gaussian around the middle of the window, or a linear slope from each border to the middle.
const (
	Gaussian Blend = "gaussian"
	Linear   Blend = "linear"
)

func (b Blend) validate() error {
	if b != "" && b != Gaussian && b != Linear {
		return fmt.Errorf("blend %q must be gaussian or linear", b)
	}
	return nil
}

// at returns the weight of an element of a window of that side, above 0.
func (b Blend) at(number, side int64) float64 {
	if b == Linear {
		return float64(min(number+1, side-number))
	}
	const deviation = 1.0 / 8 // of the side
	away := (float64(number) - float64(side-1)/2) / (float64(side) * deviation)
	return math.Exp(-away * away / 2)
}

// axis is where windows begin along one dimension, and the share of each of their elements there.
type axis struct {
	starts []int64
	shares [][]float32
}

// newAxis lays windows of a side over a size, so that neighbours share at least the overlap. Elements within the margin of a border to
// another window are ignored.
func newAxis(size, side int64, overlap float64, margin int64, blend Blend) (axis, error) {
	shared := int64(math.Ceil(float64(side) * overlap))
	if margin < 0 {
		margin = shared / 4
	}
	if side < size && 2*margin > shared {
		return axis{}, fmt.Errorf("a margin of %d at both sides of a seam, where windows of %d share %d (overlap them more)", margin, side,
			shared)
	}
	var a axis
	for at := int64(0); ; at += max(side-shared, 1) {
		at = min(at, size-side)
		a.starts = append(a.starts, at)
		if at == size-side {
			break
		}
	}
	sums := make([]float64, size)
	weight := func(start, i int64) float64 {
		if start > 0 && i < margin || start+side < size && i >= side-margin {
			return 0
		}
		return blend.at(i, side)
	}
	for _, start := range a.starts {
		for i := range side {
			sums[start+i] += weight(start, i)
		}
	}
	for _, start := range a.starts {
		shares := make([]float32, side)
		for i := range side {
			shares[i] = float32(weight(start, i) / sums[start+i])
		}
		a.shares = append(a.shares, shares)
	}
	return a, nil
}
