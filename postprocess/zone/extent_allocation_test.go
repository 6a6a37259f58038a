//go:build !race

package zone

import (
	"image"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Boxes and masks are processed without allocations once there is room; the race detector allocates on its own.
func TestSharesNoAllocations(t *testing.T) {
	a := &Analytics{Width: 60, Height: 40}
	outline := star(rand.New(rand.NewPCG(1, 1)), 30, 20, 30)
	mask := &postprocess.Mask{Bounds: image.Rect(0, 0, 60, 40), Width: 60, Height: 40, StepX: 1, StepY: 1, Logits: make([]float32, 60*40)}
	for i := range mask.Logits {
		mask.Logits[i] = 1
	}
	look := func() {
		a.boxShare(postprocess.Box{X1: 3, Y1: 3, X2: 33, Y2: 33}, outline)
		a.maskShare(mask, outline)
	}
	look()
	require.Zero(t, testing.AllocsPerRun(20, look))
}
