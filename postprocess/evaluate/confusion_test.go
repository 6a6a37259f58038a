package evaluate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/postprocess"
)

func TestConfusion(t *testing.T) {
	at := func(x float32) postprocess.Box { return postprocess.Box{X1: x, Y1: 0, X2: x + 10, Y2: 10} }
	c := Confusion{}
	c.Add([]Truth{
		{Box: at(0), Class: 2},
		{Box: at(100), Class: 5},
		{Box: at(200), Class: 5},
		{Box: postprocess.Box{X1: 300, Y1: 0, X2: 400, Y2: 100}, Class: 2, Crowd: true},
	}, []postprocess.Detection{
		{Box: at(1), Class: 2}, // the nearer of these two is the object
		{Box: at(2), Class: 5},
		{Box: at(101), Class: 2}, // another class
		{Box: at(310), Class: 2},
		{Box: at(320), Class: 5}, // the crowd is not of this one
	})
	c.Add(nil, []postprocess.Detection{{Box: at(0), Class: 7}})
	classes, counts := c.Matrix()
	assert.Equal(t, []int{2, 5, 7}, classes)
	assert.Equal(t, [][]int{{1, 0, 0, 0}, {1, 0, 0, 1}, {0, 0, 0, 0}, {0, 2, 1, 0}}, counts)
	classes, counts = new(Confusion).Matrix()
	assert.Empty(t, classes)
	assert.Equal(t, [][]int{{0}}, counts)
}
