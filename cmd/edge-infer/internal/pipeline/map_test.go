package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// mapper says that the right half of every image is of class 1.
type mapper struct{ result predict.BatchResult }

func (*mapper) Model() predict.Model { return predict.Model{Model: engine.Model{MaxBatch: 1}} }
func (*mapper) Slots() int           { return 1 }

func (m *mapper) Submit(_ int, images []engine.Image) error {
	width := float32(images[0].Width)
	m.result.Results = []predict.Result{{Map: &postprocess.DenseMap{
		Width: 2, Height: 1, StepX: 2 / width, StepY: 1 / width, X: 1/width - .5, Classes: []uint8{0, 1},
	}}}
	return nil
}

func (m *mapper) Wait(int) (*predict.BatchResult, error) { return &m.result, nil }

type surveyed []float32

func (s *surveyed) Frame(in *Result) {
	if in.Map != nil {
		*s = append(*s, in.MapStats.Image().Shares[1], in.MapStats.Zone(0).Shares[1])
	}
}

// What a network says of every place is summed up by zone; the map of a part of an image lies where the part does.
func TestMapsOfCameras(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	outer := []zone.Point{{X: .76}, {X: 1}, {X: 1, Y: 1}, {X: .76, Y: 1}} // only class 1 is there
	var seen surveyed
	p := open(t, newSlowEngine(0, 1), notify, []Sink{&seen}, Camera{
		Name: "a", Source: camera, Lossless: true, Region: Region{X: .5, Width: .5, Height: 1},
		MapStats: &zone.MapStats{Config: zone.Config{Zones: []zone.Zone{{Name: "outer", Points: outer}}}},
	})
	p.Predictor = &mapper{}
	p.prepare()
	for range 2 {
		camera.put(t)
		require.True(t, p.gather(&p.requests[0]))
		p.submit(0)
		p.finish(0)
	}
	require.Equal(t, surveyed{.5, 1, .5, 1}, seen)
	require.Nil(t, (&Result{}).Map)
}
