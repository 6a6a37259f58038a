package tensorrt_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

func TestContract(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, variant := range []struct {
			name, cuda string
			change     func(*tensorrt.Options)
		}{
			{"images in place, graphs", "", func(*tensorrt.Options) {}},
			{"copies, blocking", "", func(o *tensorrt.Options) { o.Memory, o.Wait = tensorrt.MemoryCopy, tensorrt.WaitBlock }},
			{"all in place, spinning, no graphs", "integrated=1", func(o *tensorrt.Options) {
				o.Memory, o.Wait, o.NoGraph = tensorrt.MemoryMapped, tensorrt.WaitSpin, true
			}},
			{"all in place, graphs", "integrated=1", func(*tensorrt.Options) {}},
		} {
			t.Run(variant.name, func(t *testing.T) {
				t.Setenv("FAKE_CUDA", variant.cuda)
				enginetest.Run(t, enginetest.Backend{
					SmallTypes: true, FreeSides: true, BlocksThread: true,
					Open: func(o engine.Options) (engine.Engine, error) {
						options := tensorrt.Options{Options: o, Log: quiet}
						variant.change(&options)
						return openONNX(t, version, options)
					},
				})
			})
		}
	})
}

// openONNX builds a plan for the model of the options and opens it.
func openONNX(t testing.TB, version int, o tensorrt.Options) (engine.Engine, error) {
	model, metadata := translate(t, o.Path, o.Bytes)
	build := tensorrt.BuildOptions{
		Model: model, Path: o.Path, Metadata: metadata.Override(o.Metadata), Library: tensorrt.LibraryOptions{Path: libraries[version]},
		Batch: tensorrt.Range{Max: o.MaxBatch},
		Shapes: []tensorrt.ShapeRange{
			{Name: "values", Min: []int64{1, 2, 1}, Opt: []int64{1, 2, 3}, Max: []int64{4, 2, 4}},
			{Name: "ids", Min: []int64{1}, Opt: []int64{3}, Max: []int64{4}},
		},
	}
	build.Width, build.Height = o.Sides(build.Metadata)
	plan, err := tensorrt.Build(t.Context(), build, nil)
	if err != nil {
		return nil, err
	}
	o.Bytes, o.Library = plan.File, libraries[version]
	return o.Open()
}

func TestOutputOfDataDependentSize(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		options := enginetest.Network(t, "varying")
		e, err := openONNX(t, version, tensorrt.Options{Options: options, Log: quiet})
		require.NoError(t, err)
		defer e.Close()
		for _, values := range [][]float32{{1, 0, 2, 0, 0, 3, 0, 4}, {0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1}} {
			data := []byte{}
			want := []byte{}
			for i, v := range values {
				data = append(data, floatBytes(v)...)
				if v != 0 {
					want = binary.LittleEndian.AppendUint64(want, uint64(i))
				}
			}
			require.NoError(t, e.SubmitTensors(0, []engine.Tensor{{Name: "x", Type: engine.Float32, Shape: []int64{8}, Data: data}}))
			result, err := e.Wait(0)
			require.NoError(t, err)
			require.Equal(t, []int64{1, int64(len(want) / 8)}, result.Outputs[0].Shape)
			require.Equal(t, want, append([]byte{}, result.Outputs[0].Data...))
		}
	})
}

// columns lets an engine filter the boxes of an output of shape [batch, 4+classes, boxes]; it leaves others to the host.
func columns(threshold float32) func(engine.Model) *engine.Filter {
	return func(m engine.Model) *engine.Filter {
		shape := m.Outputs[0].Shape
		if len(shape) != 3 || shape[1] < 5 || shape[2] == 6 {
			return nil
		}
		n := shape[2]
		return &engine.Filter{Threshold: threshold, BoxMap: engine.BoxMap{
			Boxes: engine.Numbers{Step: 1, Next: n}, Scores: engine.Numbers{Offset: 4 * n, Step: 1, Next: n},
			Count: int(n), Classes: int(shape[1] - 4), ScaleX: 1, ScaleY: 1,
		}}
	}
}

func TestCandidatesOfTheDevice(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		model := fake.Model{
			Network: "contrary", Operators: []string{"Conv"},
			Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{-1, 3, 64, 96}}},
			Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{-1, 7, 126}}},
		}
		plan := buildSmall(t, version, func(o *tensorrt.BuildOptions) { o.Model = model.Bytes() })
		for i, cuda := range []string{"", "integrated=1", ""} {
			t.Setenv("FAKE_CUDA", cuda)
			e, err := open(t, version, plan, func(o *tensorrt.Options) {
				o.Filter = columns(0.905)
				if i == 2 {
					o.Memory = tensorrt.MemoryCopy
				}
			})
			require.NoError(t, err)
			require.Equal(t, columns(0.905)(e.Model()), e.Model().Filter)
			im := engine.Image{Data: make([]byte, 3*32*32), Width: 32, Height: 32, Stride: 96, Format: engine.BGR}
			for n := 1; n <= 4; n++ {
				for range 3 {
					require.NoError(t, e.Submit(0, []engine.Image{im, im, im, im}[:n]))
					result, err := e.Wait(0)
					require.NoError(t, err)
					require.Empty(t, result.Outputs)
					require.Len(t, result.Candidates, n)
					for _, list := range result.Candidates {
						rows := list.Rows
						require.Len(t, rows, 10*engine.CandidateFields)
						require.Zero(t, list.Truncated)
						require.Equal(t, 24, list.Impossible, "the scores of the last anchors fell under 0")
						for i := range 10 { // scores fall by a hundredth from anchor to anchor, whose classes alternate
							row := rows[6*i : 6*i+6]
							a := int(math.Round(float64(100 * (1 - row[4]))))
							require.InDeltaSlice(t, []float32{float32(6 + a), float32(6 + a), float32(14 + a), float32(14 + a)}, row[:4], 1e-3)
							require.EqualValues(t, a%3, row[5])
						}
					}
				}
			}
			// A request with tensors returns the whole output.
			tensor := engine.Tensor{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 64, 96}, Data: make([]byte, 4*3*64*96)}
			require.NoError(t, e.SubmitTensors(1, []engine.Tensor{tensor}))
			result, err := e.Wait(1)
			require.NoError(t, err)
			require.Nil(t, result.Candidates)
			require.Equal(t, []int64{1, 7, 126}, result.Outputs[0].Shape)
			require.InDelta(t, 10, result.Outputs[0].Float32s()[0], 0)
		}
	})
}

// A filter beyond the outputs would let the kernel read other memory.
func TestFilterThatDoesNotFit(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		plan := buildSmall(t, version, nil)
		_, err := open(t, version, plan, func(o *tensorrt.Options) {
			o.Filter = func(engine.Model) *engine.Filter {
				return &engine.Filter{Threshold: 0.5, BoxMap: engine.BoxMap{
					Count: 1 << 20, Classes: 3, ScaleX: 1, ScaleY: 1, Boxes: engine.Numbers{Step: 1},
				}}
			}
		})
		require.ErrorIs(t, err, engine.ErrShape)
		require.ErrorContains(t, err, "filter: numbers {Output:0 Offset:0 Step:1 Next:0} of 1048576 boxes and 3 classes leave output ")
	})
}

func TestProfileAndLayers(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		opened, err := open(t, version, buildSmall(t, version, nil), nil)
		require.NoError(t, err)
		e := opened.(*tensorrt.Engine)
		_, err = e.Profile(0, 1)
		require.EqualError(t, err, "tensorrt profile: the slot has not run a request yet")
		im := engine.Image{Data: make([]byte, 3*32*32), Width: 32, Height: 32, Stride: 96, Format: engine.BGR}
		for range 3 {
			require.NoError(t, e.Submit(0, []engine.Image{im}))
			_, err = e.Wait(0)
			require.NoError(t, err)
			layers, err := e.Profile(0, 5)
			require.NoError(t, err)
			require.Equal(t, []tensorrt.LayerTime{{Layer: "Conv", Time: 250 * time.Microsecond}, {Layer: "Relu", Time: 250 * time.Microsecond}},
				layers)
		}
		layers, err := e.Placement()
		require.NoError(t, err)
		precision := "fp16"
		if version >= 110000 {
			precision = "fp32" // as the model has it
		}
		require.Equal(t, []tensorrt.Layer{
			{Name: "Conv", Type: "CaskConvolution", Precision: precision, Device: "GPU"},
			{Name: "Relu", Type: "CaskConvolution", Precision: precision, Device: "GPU"},
		}, layers)
	})
}
