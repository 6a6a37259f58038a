package ensemble

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// oracle is a predictor that finds in every image what it is told.
type oracle struct {
	model    predict.Model
	found    []postprocess.Detection
	decoding predict.Decoding
	results  [2]predict.BatchResult
	waiting  int
	closed   bool
	fails    error
}

func newOracle(path string, labels []string, batch int, found ...postprocess.Detection) *oracle {
	m := predict.Model{Model: engine.Model{Path: path, MaxBatch: batch}}
	m.Metadata.Labels = labels
	return &oracle{model: m, found: found}
}

func (o *oracle) Model() predict.Model { return o.model }
func (*oracle) Slots() int             { return 2 }
func (*oracle) Alloc(size int) (*engine.Buffer, error) {
	return &engine.Buffer{Data: make([]byte, size)}, nil
}

func (o *oracle) Submit(slot int, images []engine.Image) error {
	o.waiting++
	r := &o.results[slot]
	r.Results = r.Results[:0]
	for i := range images {
		p := predict.Result{Detections: append([]postprocess.Detection{}, o.found...)}
		if images[i].Width == 0 {
			p.Err = errors.New("no image")
		}
		r.Results = append(r.Results, p)
	}
	return o.fails
}

func (o *oracle) Wait(slot int) (*predict.BatchResult, error) {
	o.waiting--
	return &o.results[slot], nil
}

func (o *oracle) Tune(d predict.Decoding) error {
	if len(d.Classes) > 0 && d.Classes[0] == o.model.Path {
		return errors.New("no such label")
	}
	o.decoding = d
	return nil
}

func (o *oracle) Close() error {
	o.closed = true
	return nil
}

func at(x, score float32, class int) postprocess.Detection {
	return postprocess.Detection{Box: postprocess.Box{X1: x, X2: x + 10, Y2: 10}, Score: score, Class: class}
}

// TestNetworksAreAskedTogether: whatever numbers they give the labels, and each with its weight.
func TestNetworksAreAskedTogether(t *testing.T) {
	a := newOracle("a.onnx", []string{"nut", "bolt"}, 8, at(0, 0.9, 0), at(50, 0.3, 1))
	b := newOracle("b.onnx", []string{"bolt", "nut"}, 4, at(2, 0.6, 1), at(80, 0.5, 1))
	e := &Ensemble{
		Predictors: []predict.Predictor{a, b}, Fuser: Fuser{Weights: []float32{2, 1}}, Decoding: predict.Decoding{MinScore: 0.15},
	}
	require.NoError(t, e.Open())
	require.Equal(t, "a.onnx + b.onnx", e.Model().Path)
	require.Equal(t, 4, e.Model().MaxBatch)
	images := []engine.Image{{Width: 1}, {}, {Width: 1}}
	require.NoError(t, e.Submit(1, images))
	require.ErrorContains(t, e.Submit(1, images), "in flight")
	require.NoError(t, e.Submit(0, images[:1]))
	result, err := e.Wait(1)
	require.NoError(t, err)
	require.Len(t, result.Results, 3)
	require.EqualError(t, result.Results[1].Err, "no image")
	for _, i := range []int{0, 2} {
		found := result.Results[i].Detections
		require.Len(t, found, 3)
		require.Equal(t, 0, found[0].Class)
		require.InDelta(t, (0.9*2+0.6)/3, found[0].Score, 1e-6)
		require.InDelta(t, 2*0.6/2.4, found[0].X1, 1e-6)
		require.InDelta(t, 0.3*2/3, found[1].Score, 1e-6, "seen by the first alone")
		require.InDelta(t, 0.5/3, found[2].Score, 1e-6)
	}
	_, err = e.Wait(1)
	require.ErrorContains(t, err, "no request in flight")
	require.NoError(t, e.Tune(predict.Decoding{MinScore: 0.4}))
	require.InDelta(t, 0.1, a.decoding.MinScore, 1e-6, "weak detections count for strong objects")
	_, err = e.Wait(0)
	require.NoError(t, err)
	require.NoError(t, e.Submit(0, images[:1]))
	result, err = e.Wait(0)
	require.NoError(t, err)
	require.Len(t, result.Results[0].Detections, 1)
	require.Error(t, e.Tune(predict.Decoding{Classes: []string{"b.onnx"}}))
	require.InDelta(t, 0.1, a.decoding.MinScore, 1e-6, "an error changes nothing")

	b.fails = errors.New("out of memory")
	require.ErrorIs(t, e.Submit(0, images[:1]), b.fails)
	require.Zero(t, a.waiting, "the images' memory is free")
	require.NoError(t, e.Close())
	require.True(t, a.closed && b.closed)
}

func TestNetworksThatDoNotFit(t *testing.T) {
	a, b := newOracle("a.onnx", []string{"nut"}, 1), newOracle("b.onnx", []string{"screw"}, 1)
	e := &Ensemble{Predictors: []predict.Predictor{a, b}}
	require.EqualError(t, e.Open(), `model b.onnx detects "screw", for which a.onnx has no label (name the network with all labels first)`)
	b.model.Metadata.Labels = nil
	b.model.Recognised.Task, a.model.Recognised.Task = engine.Pose, engine.Detect
	require.ErrorContains(t, e.Open(), "an ensemble needs one task")
}

func TestNoAllocationsInAnEnsemble(t *testing.T) {
	a, b := newOracle("a", nil, 1, at(0, 0.9, 0)), newOracle("b", nil, 1, at(1, 0.8, 0))
	e := &Ensemble{Predictors: []predict.Predictor{a, b}}
	require.NoError(t, e.Open())
	images := []engine.Image{{Width: 1}}
	require.NoError(t, e.Submit(0, images))
	_, err := e.Wait(0)
	require.NoError(t, err)
	own := testing.AllocsPerRun(20, func() {
		for _, o := range []*oracle{a, b} {
			_ = o.Submit(0, images)
			_, _ = o.Wait(0)
		}
	})
	require.Equal(t, own, testing.AllocsPerRun(20, func() {
		_ = e.Submit(0, images)
		_, _ = e.Wait(0)
	}))
}

// TestTheBestClassesStay: those of a classifier that is to give them always, whatever two networks together make of their scores.
func TestTheBestClassesStay(t *testing.T) {
	classes := func(activation engine.Activation, scores ...float32) *oracle {
		o := newOracle("classes", nil, 1)
		for class, score := range scores {
			whole := postprocess.Detection{Box: postprocess.Box{X2: 8, Y2: 8}, Score: score, Class: class}
			o.found = append(o.found, whole)
		}
		o.model.Recognised.Task, o.model.Metadata.Activation = engine.Classify, activation
		return o
	}
	see := func(activation engine.Activation, always bool) (seen []int) {
		e := &Ensemble{
			Predictors: []predict.Predictor{classes(activation, 0.3, 0.05, 0.2), classes(activation, 0.1, 0.05, 0.2)},
			Decoding:   predict.Decoding{MinScore: 0.25, TopAlways: always, TopK: 2},
		}
		require.NoError(t, e.Open())
		require.NoError(t, e.Submit(0, []engine.Image{{Width: 8, Height: 8}}))
		result, err := e.Wait(0)
		require.NoError(t, err)
		for i := range result.Results[0].Detections {
			seen = append(seen, result.Results[0].Detections[i].Class)
		}
		return seen
	}
	require.Equal(t, []int{0, 2}, see(engine.Softmax, true))
	require.Equal(t, []int{0, 2}, see("", true))
	require.Empty(t, see(engine.Softmax, false))
	require.Empty(t, see(engine.Sigmoid, true), "each of them is there or not")
}
