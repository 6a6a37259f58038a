package postprocess

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClone(t *testing.T) {
	full := func() Detection {
		return Detection{Box: Box{X1: 1, Y1: 2, X2: 3, Y2: 4}, Score: 0.5, Class: 6, Detail: &Detail{
			Mask: &Mask{Width: 2, Height: 1, Logits: []float32{-1, 1}}, Keypoints: []Keypoint{{1, 2, 0.5}}, Oriented: &OrientedBox{X: 2, Angle: 0.1},
			Probabilities: []float32{0.5, 0.5},
		}}
	}
	f := full()
	c := f.Clone()
	d := f.Detail
	d.Mask.Logits[0], d.Mask.Width, d.Keypoints[0].X, d.Oriented.X, d.Probabilities[0] = 9, 9, 9, 9, 9
	assert.Equal(t, full(), c)
	plain := Detection{Box: Box{X1: 1, Y1: 2, X2: 3, Y2: 4}}
	assert.Equal(t, plain, plain.Clone())
	assert.Zero(t, testing.AllocsPerRun(10, func() { _ = plain.Clone() }), "what a task does not give costs nothing")
}
