//go:build !race

package tile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/tile"
)

// unmoved sees the same boxes in every view.
type unmoved struct {
	*oracle
	seen   *predict.BatchResult
	counts [2]int
}

func (u *unmoved) Submit(slot int, views []engine.Image) error {
	u.counts[slot] = len(views)
	return nil
}

func (u *unmoved) Wait(slot int) (*predict.BatchResult, error) {
	u.seen.Results = u.seen.Results[:u.counts[slot]]
	return u.seen, nil
}

// The race detector allocates on its own.
func TestNoAllocations(t *testing.T) {
	u := &unmoved{oracle: newOracle(t, 4, 2, 1), seen: &predict.BatchResult{}}
	for range 4 {
		u.seen.Results = append(u.seen.Results, predict.Result{Detections: []postprocess.Detection{
			{Box: postprocess.Box{X1: 20, Y1: 20, X2: 30, Y2: 30}, Score: 0.9},
			{Box: postprocess.Box{X2: 9, Y2: 9}, Score: 0.5},
			{Box: postprocess.Box{X1: 50, Y1: 5, X2: 64, Y2: 30}, Score: 0.4, Class: 1},
		}})
	}
	tiled := open(t, &tile.Tiled{Predictor: u, Tile: 64, Overlap: 0.25, WholeImage: true})
	images := []engine.Image{u.img(300, 200, engine.BGR)}
	found := 0
	request := func() {
		if err := tiled.Submit(0, images); err != nil {
			t.Error(err)
		}
		result, err := tiled.Wait(0)
		if err != nil {
			t.Error(err)
			return
		}
		found += len(result.Results[0].Detections)
	}
	request()
	require.Zero(t, testing.AllocsPerRun(20, request))
	require.Positive(t, found)
}
