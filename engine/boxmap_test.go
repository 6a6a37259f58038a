package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBoxMapCheck(t *testing.T) {
	outputs := []TensorInfo{
		{Name: "boxes", Shape: []int64{-1, 10, 4}},
		{Name: "scores", Shape: []int64{1, 10, 3}},
		{Name: "open", Shape: []int64{1, -1, 4}},
		{Name: "flat", Shape: []int64{1}},
		{Name: "huge", Shape: []int64{1, 1 << 62, 1 << 62}},
	}
	good := BoxMap{
		Boxes: Numbers{Output: 0, Step: 4, Next: 1}, Scores: Numbers{Output: 1, Step: 3, Next: 1}, Count: 10, Classes: 3, ScaleX: 1, ScaleY: 1,
	}
	require.NoError(t, good.Check(outputs))
	row := good
	row.Scores, row.Classes, row.Objectness = Numbers{Output: 1, Offset: 1, Step: 3, Next: 1}, 2, true
	require.NoError(t, row.Check(outputs))
	for _, c := range []struct {
		change func(*BoxMap)
		want   string
	}{
		{func(m *BoxMap) { m.Count = 0 }, "filter: 0 boxes of 3 classes, scaled by 1 and 1"},
		{func(m *BoxMap) { m.Classes = -1 }, "filter: 10 boxes of -1 classes, scaled by 1 and 1"},
		{func(m *BoxMap) { m.ScaleY = 0 }, "filter: 10 boxes of 3 classes, scaled by 1 and 0"},
		{func(m *BoxMap) { m.Boxes.Output = 5 }, "filter: output 5, the model has 5"},
		{func(m *BoxMap) { m.Scores.Output = -1 }, "filter: output -1, the model has 5"},
		{func(m *BoxMap) { m.Boxes.Output = 2 }, "filter: output open has shape [1 -1 4]"},
		{
			func(m *BoxMap) { m.Boxes.Output = 3 },
			"filter: numbers {Output:3 Offset:0 Step:4 Next:1} of 10 boxes and 3 classes leave output flat with shape [1]",
		},
		{func(m *BoxMap) { m.Boxes.Output = 4 }, "filter: output huge has shape [1 4611686018427387904 4611686018427387904]"},
		{
			func(m *BoxMap) { m.Boxes.Offset = 1 },
			"filter: numbers {Output:0 Offset:1 Step:4 Next:1} of 10 boxes and 3 classes leave output boxes with shape [-1 10 4]",
		},
		{
			func(m *BoxMap) { m.Boxes.Step = -4 },
			"filter: numbers {Output:0 Offset:0 Step:-4 Next:1} of 10 boxes and 3 classes leave output boxes with shape [-1 10 4]",
		},
		{
			func(m *BoxMap) { m.Count = 11 },
			"filter: numbers {Output:0 Offset:0 Step:4 Next:1} of 11 boxes and 3 classes leave output boxes with shape [-1 10 4]",
		},
		{
			func(m *BoxMap) { m.Classes = 4 },
			"filter: numbers {Output:1 Offset:0 Step:3 Next:1} of 10 boxes and 4 classes leave output scores with shape [1 10 3]",
		},
		{
			func(m *BoxMap) { m.Objectness = true },
			"filter: numbers {Output:1 Offset:0 Step:3 Next:1} of 10 boxes and 3 classes leave output scores with shape [1 10 3]",
		},
		{
			func(m *BoxMap) { m.Scores.Next = 1 << 40 },
			"filter: numbers {Output:1 Offset:0 Step:3 Next:1099511627776} of 10 boxes and 3 classes leave output scores with shape [1 10 3]",
		},
	} {
		m := good
		c.change(&m)
		err := m.Check(outputs)
		require.EqualError(t, err, c.want)
		assert.ErrorIs(t, err, ErrShape)
	}
}
