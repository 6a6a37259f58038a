package predict

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// scripted is an engine whose outputs come from the image's first bytes: box k is at x = 10k and has the score that scores finds there.
type scripted struct {
	engine.Memory
	model      engine.Model
	slots      [2][]engine.Image
	result     [2]engine.Result
	fail       error   // of Wait
	refuse     error   // of Submit
	listed     bool    // the engine filters
	shares     bool    // coordinates are shares of the input
	floor      float32 // lowest score
	impossible int     // that the device counts
	closed     int
	batches    []int
}

const scriptedBoxes = 84 // 8x8 + 4x4 + 2x2 for an input of 64x64

func newScripted(batch int) *scripted {
	return &scripted{model: engine.Model{
		Path: "scripted.onnx", Backend: "scripted", Width: 64, Height: 64, MaxBatch: batch,
		Metadata: engine.Metadata{Task: engine.Detect, Labels: []string{"bolt", "nut"}},
		Inputs:   []engine.TensorInfo{{Name: "images", Shape: []int64{-1, 3, 64, 64}}},
		Outputs:  []engine.TensorInfo{{Name: "output0", Shape: []int64{-1, 6, scriptedBoxes}}},
	}}
}

func (s *scripted) Model() engine.Model { return s.model }
func (s *scripted) Slots() int          { return len(s.slots) }
func (s *scripted) Close() error        { s.closed++; return nil }

func (s *scripted) Submit(slot int, images []engine.Image) error {
	if s.refuse != nil {
		return s.refuse
	}
	s.batches = append(s.batches, len(images))
	s.slots[slot] = append(s.slots[slot][:0], images...)
	return nil
}

func (s *scripted) SubmitTensors(slot int, inputs []engine.Tensor) error {
	if s.refuse != nil {
		return s.refuse
	}
	s.result[slot].Outputs = append(s.result[slot].Outputs[:0], inputs...)
	return nil
}

func (s *scripted) Wait(slot int) (*engine.Result, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	r := &s.result[slot]
	if len(s.slots[slot]) == 0 {
		return r, nil
	}
	r.Timing.Submitted = int64(slot + 1)
	r.Transforms, r.Candidates = r.Transforms[:0], nil
	if len(r.Outputs) == 0 {
		r.Outputs = []engine.Tensor{{Name: "output0", Data: make([]byte, 4*s.model.MaxBatch*6*scriptedBoxes)}}
	}
	out := &r.Outputs[0]
	out.Shape = append(out.Shape[:0], int64(len(s.slots[slot])), 6, scriptedBoxes)
	out.Data = out.Data[:cap(out.Data)][:4*len(s.slots[slot])*6*scriptedBoxes]
	clear(out.Data)
	for i, image := range s.slots[slot] {
		r.Transforms = append(r.Transforms, engine.Transform{ScaleX: 1, ScaleY: 1})
		put := func(field, box int, v float32) {
			binary.LittleEndian.PutUint32(out.Data[4*((i*6+field)*scriptedBoxes+box):], math.Float32bits(v))
		}
		var list []float32
		for k := range scriptedBoxes * 2 {
			put(4+k%2, k/2, s.floor)
		}
		unit := float32(1)
		if s.shares {
			unit = 1.0 / 64
		}
		for k := range scores(image) {
			x, score := float32(10*k+4), scores(image)[k]
			for field, v := range []float32{x, 8, 8, 8} {
				put(field, k, v*unit)
			}
			put(4+k%2, k, score)
			list = append(list, x-4, 4, x+4, 12, score, float32(k%2))
		}
		if s.listed {
			r.Candidates = append(r.Candidates, engine.Candidates{Rows: list, Impossible: s.impossible})
		}
	}
	if s.listed {
		out.Shape = out.Shape[:0]
	}
	return r, nil
}

// scores are the first bytes of an image up to a zero, in hundredths.
func scores(image engine.Image) (all []float32) {
	for _, b := range image.Data[:slices.Index(image.Data, 0)] {
		all = append(all, float32(b)/100)
	}
	return all
}

// shows is an image of 64x64 on which the scripted engine sees boxes of these hundredths.
func shows(hundredths ...byte) engine.Image {
	image := engine.Image{Data: make([]byte, 64*64), Width: 64, Height: 64, Stride: 64, Format: engine.GRAY8}
	copy(image.Data, hundredths)
	return image
}

func found(class int, left, score float32) postprocess.Detection {
	return postprocess.Detection{Box: postprocess.Box{X1: left, Y1: 4, X2: left + 8, Y2: 12}, Score: score, Class: class}
}

func wrap(t *testing.T, e engine.Engine, d Decoding) *Network {
	n, err := Wrap(e, d)
	require.NoError(t, err)
	return n
}

func TestNetworkDecodesEachImageOfABatch(t *testing.T) {
	for name, listed := range map[string]bool{"whole outputs": false, "filtered on the device": true} {
		t.Run(name, func(t *testing.T) {
			e := newScripted(3)
			e.listed = listed
			n := wrap(t, e, Decoding{MinScore: 0.3})
			assert.Equal(t, head.LayoutYOLOv8, n.Model().Recognised.Layout)
			assert.Equal(t, []string{"bolt", "nut"}, n.Model().Metadata.Labels)
			require.NoError(t, n.Submit(1, []engine.Image{shows(50, 90), shows(), shows(20, 40)}))
			require.NoError(t, n.Submit(0, []engine.Image{shows(99)}))
			result, err := n.Wait(1)
			require.NoError(t, err)
			assert.Equal(t, int64(2), result.Timing.Submitted)
			require.Len(t, result.Results, 3)
			assert.Equal(t, []postprocess.Detection{found(1, 10, 0.9), found(0, 0, 0.5)}, result.Results[0].Detections)
			assert.Equal(t, 2, result.Results[0].Stats.Candidates)
			assert.Empty(t, result.Results[1].Detections)
			assert.Equal(t, []postprocess.Detection{found(1, 10, 0.4)}, result.Results[2].Detections)
			other, err := n.Wait(0)
			require.NoError(t, err)
			assert.Equal(t, []postprocess.Detection{found(0, 0, 0.99)}, other.Results[0].Detections)
			assert.Equal(t, []postprocess.Detection{found(1, 10, 0.4)}, result.Results[2].Detections, "the results of slots are apart")
		})
	}
}

func TestBadImageFailsAlone(t *testing.T) {
	e := newScripted(3)
	n := wrap(t, e, Decoding{})
	bad := engine.Image{Data: make([]byte, 10), Width: 1, Height: 40000, Stride: 1, Format: engine.GRAY8}
	require.NoError(t, n.Submit(0, []engine.Image{shows(50), bad, shows(60)}))
	result, err := n.Wait(0)
	require.NoError(t, err)
	require.Len(t, result.Results, 3)
	assert.Equal(t, []postprocess.Detection{found(0, 0, 0.5)}, result.Results[0].Detections)
	assert.EqualError(t, result.Results[1].Err, "submit: image of 1x40000, sides must be 1 to 32768")
	assert.Empty(t, result.Results[1].Detections)
	assert.Equal(t, []postprocess.Detection{found(0, 0, 0.6)}, result.Results[2].Detections)
	assert.Equal(t, []int{2}, e.batches)

	require.NoError(t, n.Submit(0, []engine.Image{bad}))
	result, err = n.Wait(0)
	require.NoError(t, err)
	require.Len(t, result.Results, 1)
	require.ErrorIs(t, result.Results[0].Err, engine.ErrShape)
	assert.Zero(t, result.Timing)
	assert.Equal(t, []int{2}, e.batches, "nothing is left for the engine")

	require.NoError(t, n.Submit(0, []engine.Image{shows(70)}))
	result, err = n.Wait(0)
	require.NoError(t, err)
	assert.NoError(t, result.Results[0].Err, "the next request begins anew")
}

func TestNetworkRefuses(t *testing.T) {
	e := newScripted(2)
	n := wrap(t, e, Decoding{})
	one := []engine.Image{shows(50)}
	require.EqualError(t, n.Submit(2, one), "scripted submit: slot 2, there are slots 0 to 1")
	require.EqualError(t, n.Submit(-1, one), "scripted submit: slot -1, there are slots 0 to 1")
	require.EqualError(t, n.Submit(0, nil), "scripted submit: 0 images, 1 to 2 fit")
	require.EqualError(t, n.Submit(0, slices.Repeat(one, 3)), "scripted submit: 3 images, 1 to 2 fit")
	_, err := n.Wait(0)
	require.EqualError(t, err, "scripted wait: slot 0 has no request in flight, submit one first")
	_, err = n.Wait(7)
	require.EqualError(t, err, "scripted wait: slot 7, there are slots 0 to 1")
	require.NoError(t, n.Submit(0, one))
	require.EqualError(t, n.Submit(0, one), "scripted submit: slot 0 has a request in flight, wait for it first")
	result, err := n.Wait(0)
	require.NoError(t, err)
	assert.Len(t, result.Results[0].Detections, 1, "a refused request leaves the one in flight alone")

	e.refuse = errors.New("out of memory")
	require.EqualError(t, n.Submit(0, one), "out of memory")
	_, err = n.Wait(0)
	require.EqualError(t, err, "scripted wait: slot 0 has no request in flight, submit one first")
	e.refuse, e.fail = nil, errors.New("the GPU is gone")
	require.NoError(t, n.Submit(0, one))
	_, err = n.Wait(0)
	require.EqualError(t, err, "the GPU is gone")
	e.fail = nil
	require.NoError(t, n.Submit(0, one))
	require.NoError(t, n.Close())
	assert.Equal(t, 1, e.closed)
}

func TestWrapRefuses(t *testing.T) {
	e := newScripted(1)
	for _, c := range []struct {
		d       Decoding
		want    string
		setting bool
	}{
		{Decoding{Layout: "retinanet"}, `layout "retinanet" is not known (edge-infer model layouts lists them)`, true},
		{Decoding{Classes: []string{"nut", "cat"}}, `label "cat" is not one of the model's: bolt, nut`, true},
		{Decoding{MinScore: 2}, "model scripted.onnx: open decoder: threshold 2 is not between 0 and 1", false},
		{
			Decoding{Layout: head.LayoutClassify},
			"model scripted.onnx: output0 [-1 6 84] are not what layout classify needs, [B,nc] (edge-infer model layouts lists them)", false,
		},
	} {
		_, err := Wrap(e, c.d)
		require.EqualError(t, err, c.want)
		assert.Equal(t, c.setting, errors.Is(err, ErrSetting), c.want)
	}
	assert.Zero(t, e.closed, "the engine stays its owner's")
	e.model.Metadata.Labels = nil
	_, err := Wrap(e, Decoding{Classes: []string{"cat"}})
	require.EqualError(t, err, `label "cat": the model names none (give its labels with --labels FILE)`)
}

func TestTune(t *testing.T) {
	n := wrap(t, newScripted(1), Decoding{MinScore: 0.5})
	see := func(slot int) (labels []int) {
		result, err := n.Wait(slot)
		require.NoError(t, err)
		for _, f := range result.Results[0].Detections {
			labels = append(labels, f.Class)
		}
		return labels
	}
	img := []engine.Image{shows(60, 40)}
	require.NoError(t, n.Submit(0, img))
	require.NoError(t, n.Tune(Decoding{MinScore: 0.3}))
	require.NoError(t, n.Submit(1, img))
	assert.Equal(t, []int{0}, see(0), "a request keeps the settings of its Submit")
	assert.Equal(t, []int{0, 1}, see(1))
	require.NoError(t, n.Tune(Decoding{MinScore: 0.3, Classes: []string{"nut"}}))
	require.NoError(t, n.Submit(0, img))
	assert.Equal(t, []int{1}, see(0))
	require.NoError(t, n.Tune(Decoding{MinScore: 0.3, Limit: 1}))
	require.NoError(t, n.Submit(0, img))
	assert.Equal(t, []int{0}, see(0))
	for _, c := range []struct {
		d    Decoding
		want string
	}{
		{Decoding{Classes: []string{"cat"}}, `label "cat" is not one of the model's: bolt, nut`},
		{Decoding{Layout: "retinanet"}, `layout "retinanet" is not known (edge-infer model layouts lists them)`},
		{Decoding{Layout: "yolov5"}, "layout yolov5: the network was opened as yolov8 (open it again)"},
	} {
		err := n.Tune(c.d)
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, ErrSetting)
	}
	require.NoError(t, n.Submit(0, img))
	assert.Equal(t, []int{0}, see(0), "an error changes nothing")
}

func TestRun(t *testing.T) {
	e := newScripted(2)
	n := wrap(t, e, Decoding{})
	var images []engine.Image
	for i := range 7 {
		images = append(images, shows(byte(50+i)))
	}
	all, err := Run(n, images...)
	require.NoError(t, err)
	require.Len(t, all, 7)
	for i, img := range all {
		assert.Equal(t, []postprocess.Detection{found(0, 0, float32(50+i)/100)}, img.Detections)
	}
	assert.Equal(t, []int{2, 2, 2, 1}, e.batches)
	all, err = Run(n)
	require.NoError(t, err)
	assert.Empty(t, all)

	e.fail = errors.New("the GPU is gone")
	_, err = Run(n, images...)
	require.EqualError(t, err, "the GPU is gone\nthe GPU is gone", "both requests that were in flight")
	e.fail = nil
	_, err = Run(n, images...)
	require.NoError(t, err, "every slot is free again")
}
