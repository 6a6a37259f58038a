package standby_test

import (
	"cmp"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/standby"
	"github.com/edge-infer/edge-infer/engine/triton"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens servers and the local engine that stands by for them.
func open(t *testing.T, o engine.Options) (*standby.Engine, *kservetest.Server, error) {
	o.Slots = cmp.Or(o.Slots, 2)
	there := o
	there.Metadata, there.Slots = engine.Metadata{}, 1
	served, err := onnxruntime.Open(there)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, served.Close()) })
	file, err := onnx.Parse(o.Path, o.Bytes)
	require.NoError(t, err)
	s := kservetest.New(t, served, file.Metadata(), nil)
	o.Remote.Timeout = time.Minute
	quiet := slog.New(slog.DiscardHandler)
	remote, err := triton.Open(t.Context(), "grpc://"+s.Address+"/"+kservetest.Name, o, quiet)
	if err != nil {
		return nil, nil, err
	}
	local, err := onnxruntime.Open(o)
	require.NoError(t, err)
	e, err := standby.Open(standby.Options{Remote: remote, Local: local, Log: quiet})
	require.NoError(t, err)
	return e, s, nil
}

// The contract of every engine, whichever of the two works.
func TestContract(t *testing.T) {
	for _, away := range []bool{false, true} {
		enginetest.Run(t, enginetest.Backend{
			Open: func(o engine.Options) (engine.Engine, error) {
				e, s, err := open(t, o)
				if err == nil && away {
					s.Stop()
				}
				return e, err
			},
			SmallTypes: true, FreeSides: true, AllocationsPerFrame: 400,
		})
	}
}

// A request that the servers fail is done here, and no model but theirs stands by.
func TestARequestIsDoneAgainHere(t *testing.T) {
	e, s, err := open(t, enginetest.Network(t, "image"))
	require.NoError(t, err)
	defer e.Close()
	img := []engine.Image{{Data: make([]byte, 64), Width: 8, Height: 8, Stride: 8, Format: engine.GRAY8}}
	infer := func() []byte {
		require.NoError(t, e.Submit(0, img))
		result, err := e.Wait(0)
		require.NoError(t, err)
		return append([]byte(nil), result.Outputs[0].Data...)
	}
	want := infer()
	require.Equal(t, standby.Status{}, e.Status())
	s.Stop()
	require.Equal(t, want, infer())
	status := e.Status()
	require.True(t, status.Local)
	require.EqualValues(t, 1, status.Requests)
	require.EqualValues(t, 1, status.Changes)
	require.Contains(t, status.Reason, "no server answers")

	other, err := onnxruntime.Open(enginetest.Network(t, "image_gray"))
	require.NoError(t, err)
	defer other.Close()
	_, err = standby.Open(standby.Options{Remote: e.Options.Remote, Local: other, Log: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, engine.ErrShape)
	require.ErrorContains(t, err, "the servers' model is not the one that stands by: its inputs are")
}

// A second request of a slot is refused, also when the servers went while the first was in flight there.
func TestASecondRequestIsRefusedWhereverTheFirstIs(t *testing.T) {
	e, s, err := open(t, enginetest.Network(t, "image"))
	require.NoError(t, err)
	defer e.Close()
	img := []engine.Image{{Data: make([]byte, 64), Width: 8, Height: 8, Stride: 8, Format: engine.GRAY8}}
	require.NoError(t, e.Submit(0, img))
	s.Stop()
	require.NoError(t, e.Submit(1, img))
	_, err = e.Wait(1) // by now it is known that no server answers
	require.NoError(t, err)
	require.ErrorContains(t, e.Submit(0, img), "slot 0 has a request in flight")
	_, err = e.Wait(0)
	require.NoError(t, err)
	require.NoError(t, e.Submit(0, img))
	_, err = e.Wait(0)
	require.NoError(t, err)
}

// The encoding of images may differ as long as their size is the same.
func TestTheServersMayTakeImagesAsAnotherType(t *testing.T) {
	describe := func(kind engine.DataType, side int64) engine.Model {
		m := engine.Model{Inputs: []engine.TensorInfo{{Name: "images", Type: kind, Shape: []int64{-1, 3, side, side}}}, MaxBatch: 1}
		img, err := engine.FindImageInput(m.Inputs, engine.Metadata{})
		require.NoError(t, err)
		m.Image, m.Width, m.Height = img, img.Width, img.Height
		return m
	}
	opened := func(there engine.Model) error {
		e, err := standby.Open(standby.Options{Remote: described{about: there}, Local: described{about: describe(engine.Float32, 64)}})
		if err == nil {
			require.NoError(t, e.Close())
		}
		return err
	}
	require.NoError(t, opened(describe(engine.Uint8, 64)))
	require.ErrorIs(t, opened(describe(engine.Uint8, 32)), engine.ErrShape)
}

// described is an engine that is only looked at.
type described struct {
	standby.Remote
	about engine.Model
}

func (d described) Model() engine.Model { return d.about }
func (d described) Slots() int          { return 1 }
func (d described) Close() error        { return nil }
