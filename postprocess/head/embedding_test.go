package head

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// TestEmbed: a vector comes out with a length of 1, for each image its own; what has no direction gives nothing and is counted.
func TestEmbed(t *testing.T) {
	shape := []int64{2, 3, 1, 1}
	model := sized(128, 256, engine.Embed, 0, shape)
	d := openDecoder(t, model, Options{})
	require.Equal(t, LayoutEmbedding, d.Recognised().Layout)
	outputs := whole([]float32{0, 3, -4, 1, 1, 1}, shape)
	r := &engine.Result{Outputs: []engine.Tensor{outputs}, Transforms: []engine.Transform{identity, identity}}
	found, _, err := d.Decode(r, 0, 40, 90, nil)
	require.NoError(t, err)
	found, _, err = d.Decode(r, 1, 40, 90, found)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.InDeltaSlice(t, []float32{0, 0.6, -0.8}, found[0].Detail.Embedding, 1e-6)
	require.InDelta(t, 1/math.Sqrt(3), found[1].Detail.Embedding[2], 1e-6)
	require.Equal(t, float32(90), found[0].Y2, "it is of the whole image")

	for impossible, numbers := range [][]float32{{0, 0, 0}, {1, float32(math.NaN()), 0}} {
		found, stats, err := d.Decode(result(identity, whole(numbers, []int64{1, 3})), 0, 40, 90, nil)
		require.NoError(t, err)
		require.Empty(t, found)
		require.Equal(t, impossible, stats.BadScores)
	}
	_, err = Recognise(sized(128, 256, "", 0, []int64{1, 4097}), LayoutEmbedding)
	require.EqualError(t, err, "output0 [1 4097] are not what layout embedding needs, [B,D], D from 2 to 4096 "+
		"(edge-infer model layouts lists "+
		"them)")
}
