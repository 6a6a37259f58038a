package head

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// TestKeypointsHaveTheNamesOfTheirClass: what the file says, COCO's of a person for 17 points of a silent one, else none.
func TestKeypointsHaveTheNamesOfTheirClass(t *testing.T) {
	open := func(points, classes int, names [][]string) *Decoder {
		m := &engine.Model{
			Width: 640, Height: 640,
			Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{1, int64(4 + classes + 3*points), 8400}}},
		}
		m.Metadata = engine.Metadata{
			Task: engine.Pose, Keypoints: points, KeypointNumbers: 3, KeypointNames: names, Labels: []string{"fork", "crane", "box"}[:classes],
		}
		d := openDecoder(t, m, Options{})
		require.Equal(t, points, d.Recognised().KeypointCount)
		return d
	}
	skeleton := func(d *Decoder, class int) *postprocess.Skeleton { return d.decoder.(*poseDecoder).skeleton(class) }
	fork, crane := []string{"tip", "mast"}, []string{"hook", "boom"}
	d := open(2, 3, [][]string{fork, crane})
	require.Equal(t, fork, skeleton(d, 0).Names)
	require.Equal(t, crane, skeleton(d, 1).Names)
	require.Nil(t, skeleton(d, 2), "a class without names")
	require.Nil(t, skeleton(d, -1))
	require.Equal(t, []string{"tip", "mast", "hook", "boom"}, d.Recognised().KeypointNames())

	require.Equal(t, crane, skeleton(open(2, 3, [][]string{crane}), 2).Names, "one list is for all")
	require.Nil(t, skeleton(open(2, 1, nil), 0))
	require.Nil(t, skeleton(open(2, 1, [][]string{{"of", "another", "number"}}), 0))
	require.True(t, skeleton(open(17, 1, nil), 0).Person)
	require.Equal(t, postprocess.PersonKeypoints(), open(17, 1, nil).Recognised().KeypointNames())
	other := make([]string, 17)
	for i := range other {
		other[i] = string(rune('a' + i))
	}
	require.False(t, skeleton(open(17, 1, [][]string{other}), 0).Person)

	found := []postprocess.Detection{{Class: 1}, {Class: 2}}
	d.in.match = d.settings.match
	d.in.tensors[0].data = make([]float32, (4+3+3*2)*8400)
	d.in.transform = engine.Transform{ScaleX: 1, ScaleY: 1}
	decoder := d.decoder.(*poseDecoder)
	decoder.origins = []int32{0, 1}
	decoder.addKeypoints(&d.in, found)
	require.Equal(t, crane, found[0].Detail.Skeleton.Names)
	require.Nil(t, found[1].Detail.Skeleton)
	require.Len(t, found[1].Detail.Keypoints, 2)
}
