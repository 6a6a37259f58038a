package head

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// TestEightyLabelsOfOnesOwn: 80 labels have the gaps of COCO's ids only if they are COCO's.
func TestEightyLabelsOfOnesOwn(t *testing.T) {
	own := make([]string, cocoClasses)
	for i := range own {
		own[i] = "part " + strconv.Itoa(i)
	}
	respelled := engine.KnownLabels("coco")
	for i, name := range map[int]string{3: "motorbike", 4: "aeroplane", 57: "sofa", 58: "pottedplant", 60: "diningtable", 62: "tvmonitor"} {
		respelled[i] = name
	}
	for _, c := range []struct {
		name   string
		labels []string
		want   []int // of the numbers 1, 13, 80 and 90
	}{
		{"COCO", engine.KnownLabels("coco"), []int{0, 11, 70, 79}},
		{"Darknet's names of COCO", respelled, []int{0, 11, 70, 79}},
		{"own", own, []int{0, 12, 79, 89}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &engine.Model{Width: 640, Height: 640, Metadata: engine.Metadata{Labels: c.labels}, Outputs: []engine.TensorInfo{
				{Name: "boxes", Shape: []int64{-1, 4}}, {Name: "scores", Shape: []int64{-1}}, {Name: "labels", Shape: []int64{-1}, Type: engine.Int64},
			}}
			found, err := recognise(m, LayoutTorchvision)
			require.NoError(t, err)
			var got []int
			for _, number := range []int{1, 13, 80, 90} {
				got = append(got, found.numbers.class(number))
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, -1, found.numbers.class(0), "background")
		})
	}
	// A head that scores 91 classes does not fit 80 other labels.
	n := &network{labels: cocoClasses}
	_, fits := n.numbering(cocoIDs, 0, true)
	assert.False(t, fits)
	assert.Equal(t, "class 89", postprocess.Label(own, 89))
}
