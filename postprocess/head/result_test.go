package head

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// described is a model with outputs of these shapes and that many labels, for images of 640x640.
func described(labels int, shapes ...[]int64) *engine.Model {
	m := &engine.Model{Width: 640, Height: 640}
	for i := range labels {
		m.Metadata.Labels = append(m.Metadata.Labels, "class"+strconv.Itoa(i))
	}
	if labels == cocoClasses {
		m.Metadata.Labels = engine.KnownLabels("coco")
	}
	for i, shape := range shapes {
		m.Outputs = append(m.Outputs, engine.TensorInfo{Name: "output" + strconv.Itoa(i), Shape: shape})
	}
	return m
}

// result is what an engine gives for one image.
func result(t engine.Transform, outputs ...engine.Tensor) *engine.Result {
	return &engine.Result{Outputs: outputs, Transforms: []engine.Transform{t}}
}

// listed is what an engine gives that has filtered on its device.
func listed(t engine.Transform, rows []float32) *engine.Result {
	return &engine.Result{Transforms: []engine.Transform{t}, Candidates: []engine.Candidates{{Rows: rows}}}
}

func whole(data []float32, shape []int64) engine.Tensor {
	return engine.Tensor{Name: "output0", Shape: shape, Data: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), 4*len(data))}
}

func halves(data []uint16, shape []int64) engine.Tensor {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), 2*len(data))
	return engine.Tensor{Name: "output0", Type: engine.Float16, Shape: shape, Data: bytes}
}

func found(class int, score, x1, y1, x2, y2 float32) postprocess.Detection {
	return postprocess.Detection{Box: postprocess.Box{X1: x1, Y1: y1, X2: x2, Y2: y2}, Score: score, Class: class}
}

// openDecoder returns a decoder for a model that it must recognise.
func openDecoder(t testing.TB, m *engine.Model, o Options) *Decoder {
	t.Helper()
	d, err := NewDecoder(m, o)
	require.NoError(t, err)
	return d
}
