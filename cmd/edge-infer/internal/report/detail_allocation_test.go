//go:build !race

package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// The race detector allocates on its own.
func TestDetailsNoAllocations(t *testing.T) {
	f := &postprocess.Detection{Detail: &postprocess.Detail{Keypoints: make([]postprocess.Keypoint, 17), Mask: speckled(40, 30)}}
	for _, form := range []MaskForm{MaskRLE, MaskPolygon} {
		d := Details{Masks: form}
		frame := func() {
			d.Begin()
			for range 5 {
				d.Of(f, 320, 240)
			}
		}
		frame()
		require.Zero(t, testing.AllocsPerRun(20, frame), form)
	}
}
