package onnxruntime_test

import (
	"encoding/binary"
	"math"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
)

func TestACPUIsFrugal(t *testing.T) {
	for frugal, most := range map[bool]int{false: 4, true: 1} {
		options := enginetest.Network(t, "image")
		options.MaxBatch, options.Frugal = 4, frugal
		e, err := onnxruntime.Open(options)
		require.NoError(t, err)
		assert.Equal(t, most, e.Model().MaxBatch)
		require.NoError(t, e.Close())
	}
}

func TestRefusedModels(t *testing.T) {
	img := enginetest.Network(t, "image").Bytes
	for _, test := range []struct {
		name    string
		options engine.Options
		kind    error
		err     string
	}{
		{
			name: "operator set of the future", options: enginetest.Network(t, "future"), kind: engine.ErrUnsupported,
			err: "(export it again with opset=17 instead of 99, or use a newer ONNX Runtime)",
		},
		{
			name: "unknown operator", options: enginetest.Network(t, "stranger"), kind: engine.ErrUnsupported,
			err: "(the model uses operator Teleport of com.example; export it with standard operators only)",
		},
		{
			name: "another size", options: engine.Options{Bytes: ofOneSize(t)}, kind: engine.ErrUnsupported,
			err: "onnxruntime open: the model declares no image size and does not run at 640x640",
		},
		{
			name: "invalid preprocessing", options: misled(t), kind: engine.ErrUnsupported,
			err: `metadata "preprocess": preprocess pad: 256 is not a level of gray from 0 to 255 (remove or correct the entry in the file)`,
		},
		{
			name: "no model", options: engine.Options{Path: "cat.png", Bytes: []byte("\x89PNG\r\n\x1a\n")}, kind: engine.ErrUnsupported,
			err: `"cat.png": a PNG image, not ONNX`,
		},
		{name: "empty", options: engine.Options{Path: "a.onnx"}, kind: engine.ErrUnsupported, err: `"a.onnx"`},
		{
			name: "cut short", options: engine.Options{Path: "a.onnx", Bytes: img[:len(img)-100]}, kind: engine.ErrUnsupported,
			err: `"a.onnx"`,
		},
		{
			name: "other precision", options: engine.Options{Path: "a.onnx", Bytes: img, Precision: engine.FP16}, kind: engine.ErrUnsupported,
			err: "onnxruntime open: the model file has precision fp32, not fp16 (run edge-infer quantize a.onnx --precision fp16 and use its output)",
		},
		{
			name: "slots", options: engine.Options{Bytes: img, Slots: -1}, kind: engine.ErrUnsupported,
			err: "onnxruntime open: -1 slots: use 0 to 64",
		},
		{
			name: "batch", options: engine.Options{Bytes: img, MaxBatch: 1 << 40}, kind: engine.ErrUnsupported,
			err: "onnxruntime open: 1099511627776 images in a batch: use 0 to 1024",
		},
		{
			name: "other provider", options: engine.Options{Bytes: img, Provider: "npu"}, kind: engine.ErrUnsupported,
			err: `onnxruntime open: unknown provider "npu" (use cpu or cuda)`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := onnxruntime.Open(test.options)
			require.ErrorIs(t, err, test.kind)
			require.ErrorContains(t, err, test.err)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// ofOneSize is a network that leaves the size of its images open and takes those of 48x320 alone.
func ofOneSize(t *testing.T) []byte {
	b := testnet.NewBuilder(1)
	x := b.Input("images", 1, 3, -1, -1)
	b.Output(b.Node("Reshape", "/flat", []string{x, b.Ints("/shape", 1, 3*48*320)}), 1, 3*48*320)
	data, err := proto.Marshal(b.Model(17).Proto)
	require.NoError(t, err)
	return data
}

// misled is a network whose metadata has an invalid preprocessing.
func misled(t *testing.T) engine.Options {
	options := enginetest.Network(t, "image")
	m, err := onnx.Parse("", options.Bytes)
	require.NoError(t, err)
	m.SetMetadata(engine.PreprocessProperty, "pad: 256")
	options.Bytes, err = m.Bytes()
	require.NoError(t, err)
	return options
}

func TestNamesThatCannotBeRead(t *testing.T) {
	options := enginetest.Network(t, "unnamed")
	e, err := onnxruntime.Open(options)
	require.NoError(t, err)
	require.Equal(t, []engine.Ignored{{Key: "names", Reason: "unexpected 'n' at byte 15"}}, e.Model().Metadata.Ignored)
	require.NoError(t, e.Close())

	options.Metadata.Labels = []string{"bolt", "nut"}
	e, err = onnxruntime.Open(options)
	require.NoError(t, err)
	require.Empty(t, e.Model().Metadata.Ignored, "labels of one's own replace them")
	require.NoError(t, e.Close())
}

func TestCUDAThatIsNotThere(t *testing.T) {
	options := enginetest.Network(t, "image")
	options.Provider = engine.CUDA
	e, err := onnxruntime.Open(options)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		t.Skip("this ONNX Runtime has CUDA")
	}
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, "onnxruntime open: no CUDA provider: ")
	_, _, findErr := onnxruntime.Find(engine.Options{Provider: engine.CUDA})
	require.EqualError(t, findErr, err.Error())
}

func TestPrecisionOfTheFile(t *testing.T) {
	options := enginetest.Network(t, "image_half")
	options.Precision = engine.FP16
	e, err := onnxruntime.Open(options)
	require.NoError(t, err)
	assert.Equal(t, engine.FP16, e.Model().Precision)
	require.NoError(t, e.Close())
}

func TestThreads(t *testing.T) {
	options := enginetest.Network(t, "image")
	for threads, want := range map[int]int{0: runtime.NumCPU(), 1: 1, 3: 3} {
		options.Threads, options.Spin = threads, threads == 3
		e, err := onnxruntime.Open(options)
		require.NoError(t, err)
		assert.Equal(t, "CPU, "+strconv.Itoa(want)+" threads", e.Model().Device)
		require.NoError(t, e.Close())
	}
}

// Output shapes that depend on the data, empty ones included.
func TestVaryingOutputs(t *testing.T) {
	e, err := onnxruntime.Open(enginetest.Network(t, "varying"))
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for _, places := range [][]int64{{1, 5}, {1, 6}, {0, 2, 7}, {}, {3}, {0, 1, 2, 3, 4, 5, 6, 7}} {
		data := make([]byte, 32)
		for _, at := range places {
			binary.LittleEndian.PutUint32(data[4*at:], math.Float32bits(2))
		}
		require.NoError(t, e.SubmitTensors(0, []engine.Tensor{{Name: "x", Type: engine.Float32, Shape: []int64{8}, Data: data}}))
		result, err := e.Wait(0)
		require.NoError(t, err)
		require.Equal(t, []int64{1, int64(len(places))}, result.Outputs[0].Shape)
		for i, want := range places {
			require.EqualValues(t, want, binary.LittleEndian.Uint64(result.Outputs[0].Data[8*i:]))
		}
	}
}

// More shapes than a slot remembers.
func TestManyShapes(t *testing.T) {
	e, err := onnxruntime.Open(enginetest.Network(t, "tensors"))
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for range 2 {
		for n := int64(1); n <= 40; n++ {
			values, ids := make([]byte, 8*n), make([]byte, 8)
			for i := range 2 * n {
				binary.LittleEndian.PutUint32(values[4*i:], math.Float32bits(float32(i)))
			}
			ids[0] = 3
			require.NoError(t, e.SubmitTensors(0, []engine.Tensor{
				{Name: "values", Type: engine.Float32, Shape: []int64{n, 2, 1}, Data: values},
				{Name: "ids", Type: engine.Int64, Shape: []int64{1}, Data: ids},
			}))
			result, err := e.Wait(0)
			require.NoError(t, err)
			require.Equal(t, []int64{n, 2, 1}, result.Outputs[0].Shape)
			for i, got := range result.Outputs[0].Float32s() {
				require.EqualValues(t, 3*i, got)
			}
		}
	}
}
