package predict

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/postprocess"
)

// sizedNetwork is one that answers in pixels of the size that it is given, as the programs of RT-DETR, D-FINE and DEIM export them: one box
// from a quarter to half of the width and three quarters of the height.
func sizedNetwork(t *testing.T) []byte {
	t.Helper()
	floats := func(name string, dims []int64, values ...float32) *onnx.TensorProto {
		var raw []byte
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		return &onnx.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(onnx.TensorProto_FLOAT)), Dims: dims, RawData: raw}
	}
	g := &onnx.GraphProto{
		Name: proto.String("sized"),
		Input: []*onnx.ValueInfoProto{
			onnx.NewValueInfo("images", onnx.TensorProto_FLOAT, []int64{-1, 3, 64, 32}),
			onnx.NewValueInfo("orig_target_sizes", onnx.TensorProto_INT64, []int64{-1, 2}),
		},
		Output: []*onnx.ValueInfoProto{
			onnx.NewValueInfo("labels", onnx.TensorProto_INT64, []int64{-1, 1}),
			onnx.NewValueInfo("boxes", onnx.TensorProto_FLOAT, []int64{-1, 1, 4}),
			onnx.NewValueInfo("scores", onnx.TensorProto_FLOAT, []int64{-1, 1}),
		},
		Initializer: []*onnx.TensorProto{
			floats("shares", []int64{1, 1, 4}, 0.25, 0.25, 0.5, 0.75), floats("score", []int64{1, 1}, 0.9), onnx.NewInts("label", []int64{2}, 1, 1),
			onnx.NewInts("first", []int64{1}, 1),
		},
		Node: []*onnx.NodeProto{
			onnx.NewNode("Cast", "cast", []string{"orig_target_sizes"}, []string{"sides"}, onnx.Int("to", int64(onnx.TensorProto_FLOAT))),
			onnx.NewNode("Concat", "twice", []string{"sides", "sides"}, []string{"corners"}, onnx.Int("axis", 1)),
			onnx.NewNode("Unsqueeze", "queries", []string{"corners", "first"}, []string{"scale"}),
			onnx.NewNode("Mul", "pixels", []string{"shares", "scale"}, []string{"boxes"}),
			onnx.NewNode("Identity", "label/out", []string{"label"}, []string{"labels"}),
			onnx.NewNode("Identity", "score/out", []string{"score"}, []string{"scores"}),
		},
	}
	m := &onnx.Model{Proto: &onnx.ModelProto{
		IrVersion: proto.Int64(8), Graph: g, OpsetImport: []*onnx.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(13)}},
	}}
	data, err := m.Bytes()
	require.NoError(t, err)
	return data
}

// The size that a network wants beside the image is given by whoever runs it, and its boxes come out in pixels of the source.
func TestSizesAreGivenToNetworksThatWantThem(t *testing.T) {
	o := quiet(Options{Model: "d-fine.onnx", Backend: "onnxruntime=cpu"})
	o.Bytes = sizedNetwork(t)
	n, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer n.Close()
	seen, err := Run(n, engine.Image{Data: make([]byte, 200*100), Width: 200, Height: 100, Stride: 200, Format: engine.GRAY8})
	require.NoError(t, err)
	require.NoError(t, seen[0].Err)
	want := postprocess.Detection{Box: postprocess.Box{X1: 50, Y1: 25, X2: 100, Y2: 75}, Score: 0.9, Class: 2}
	require.Equal(t, []postprocess.Detection{want}, seen[0].Detections)
	assert.Contains(t, Describe(n.Model()).Preprocessing, "32x64: stretch, bilinear-antialias, pad 114, rgb, 0..1, nchw (that of rtdetr: ")

	arrays := o
	arrays.TensorInputs = true
	e, err := OpenRaw(t.Context(), arrays)
	require.NoError(t, err)
	defer e.Close()
	assert.Len(t, e.Model().Inputs, 2, "who runs it on arrays gives the size himself")
}

// A network whose file does not say how it takes images takes them as others with its head do, unless somebody says another way.
func TestImagesAreTakenAsTheHeadHasIt(t *testing.T) {
	yolox := exported{[]tensor{out("images", 1, 3, 64, 64)}, []tensor{out("output", 1, 84, 10)}, nil}
	open := exported{[]tensor{out("images", 1, 3, 64, 64)}, []tensor{out("output", 1, -1, 10)}, nil}
	bytes := exported{[]tensor{out("images:uint8", 1, 3, 64, 64)}, []tensor{out("boxes", 1, 84, 4), out("scores", 1, 84, 5)}, nil}
	const presumed = ": neither the file nor a setting specifies it)"
	for _, c := range []struct {
		name    string
		network exported
		set     func(o *Options)
		want    string
	}{
		{"yolox", yolox, func(*Options) {}, "64x64: letterbox-top-left, bilinear, pad 114, bgr, 0..255, nchw (that of yolox" + presumed},
		{
			"a setting", yolox, func(o *Options) { o.Metadata.Preprocess = engine.Preprocess{Resize: engine.Stretch} },
			"64x64: stretch, bilinear, pad 114, rgb, 0..1, nchw",
		},
		{
			"a named layout", yolox, func(o *Options) { o.Metadata.Labels, o.Decoding.Layout = nil, "yolox" },
			"64x64: letterbox-top-left, bilinear, pad 114, bgr, 0..255, nchw (that of yolox" + presumed,
		},
		{
			"a layout of sizes that only a run tells", open, func(o *Options) { o.Metadata.Labels, o.Decoding.Layout = nil, "yolox" },
			"64x64: letterbox-top-left, bilinear, pad 114, bgr, 0..255, nchw (that of yolox" + presumed,
		},
		{"bytes", bytes, func(*Options) {}, "64x64: letterbox, bilinear, pad 114, rgb, 0..255, nchw (that of yolo-nas" + presumed},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := quiet(Options{Model: "network.onnx", Backend: "onnxruntime=cpu"})
			o.Bytes = c.network.bytes(t)
			o.Metadata.Labels = []string{"a", "b", "c", "d", "e"}
			c.set(&o)
			d, err := Inspect(t.Context(), o)
			require.NoError(t, err)
			assert.Equal(t, c.want, d.Preprocessing)
		})
	}
}
