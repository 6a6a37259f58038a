package cascade_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// embedder is a real network whose vector is the mean colour.
func embedder(t testing.TB, batch int) *predict.Network {
	b := testnet.NewBuilder(1)
	x := b.Input("images", -1, 3, 32, 32)
	x = b.Node("GlobalAveragePool", "/pool", []string{x})
	b.Output(b.Rename(b.Node("Flatten", "/flat", []string{x}), "vector"), -1, 3)
	m := b.Model(17)
	m.SetMetadata("task", "embed")
	m.SetMetadata("preprocess", "{preset: ultralytics, resize: stretch}")
	return open(t, m, batch)
}

var directions = map[string][]float32{"red": {1, 0, 0}, "green": {0, 1, 0}, "blue": {0, 0, 1}}

// TestAppearances: each look is told once with its vector, no more often than the stage allows, and makes no attribute.
func TestAppearances(t *testing.T) {
	a := attend(t, nil, cascade.Stage{Name: "person", Predictor: embedder(t, 4), Interval: time.Second, KeepEmbedding: true})
	defer a.Close()
	told := map[uint64][]float32{}
	f := newVideo("gate", 2)
	f.frame.OnEmbedding = func(track uint64, vector []float32) { told[track] = slices.Clone(vector) }
	f.show(0, "red")
	f.show(1, "blue")
	require.Empty(t, f.next(a, 0), "a vector is no news of an event")
	require.Len(t, told, 2)
	require.InDeltaSlice(t, directions["red"], told[1], 1e-3)
	require.InDeltaSlice(t, directions["blue"], told[2], 1e-3)
	clear(told)
	f.show(0, "green")
	f.next(a, 400*time.Millisecond)
	require.Empty(t, told, "a second has not passed")
	f.next(a, 600*time.Millisecond)
	require.InDeltaSlice(t, directions["green"], told[1], 1e-3)
	require.InDeltaSlice(t, directions["green"], a.Embedding("gate", 1), 1e-3, "the latest look")
	require.Empty(t, a.Attributes("gate", 1))
	require.Empty(t, a.Embedding("yard", 1))
}

// TestDetectionsHaveEmbeddings beside the attributes of another stage, in more requests than one.
func TestDetectionsHaveEmbeddings(t *testing.T) {
	img := black(300, 100)
	var found []postprocess.Detection
	order := []string{"red", "blue", "green", "blue", "red"}
	for i, colour := range order {
		found = append(found, paint(&img, colour, i%2, 60*i, 10, 40, 60))
	}
	chained := &cascade.Chained{Predictor: &scene{found: [][]postprocess.Detection{found}}, Stages: []cascade.Stage{
		{Name: "person", Predictor: embedder(t, 2), Classes: []string{"car"}}, {Name: "colour", Predictor: colours(t, 2)},
	}}
	require.NoError(t, chained.Open())
	defer chained.Close()
	for range 2 {
		require.NoError(t, chained.Submit(0, []engine.Image{img}))
		result, err := chained.Wait(0)
		require.NoError(t, err)
		for i := range result.Results[0].Detections {
			f := &result.Results[0].Detections[i]
			require.Equal(t, "colour="+order[i], values(f))
			if i%2 == 1 {
				require.Empty(t, f.Detail.Embedding, "a person, which is not looked at")
				continue
			}
			require.InDeltaSlice(t, directions[order[i]], f.Detail.Embedding, 1e-3)
		}
	}
}

func TestEmbeddingsThatCannotBe(t *testing.T) {
	n, c := embedder(t, 1), colours(t, 1)
	defer n.Close()
	defer c.Close()
	for want, stages := range map[string][]cascade.Stage{
		"cascade b: a is an embedding network already (one is supported)": {
			{Name: "a", Predictor: n}, {Name: "b", Predictor: n},
		},
		"cascade c: model colours.onnx has no embedding, it outputs the best classes of the image": {{Name: "c", Predictor: c, KeepEmbedding: true}},
	} {
		require.EqualError(t, (&cascade.Secondary{Stages: stages}).Open(), want)
	}
}
