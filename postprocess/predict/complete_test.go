package predict

import (
	"bytes"
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
	return file(t, g)
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

// file returns a graph as an ONNX file.
func file(t *testing.T, g *onnx.GraphProto) []byte {
	t.Helper()
	g.Name = proto.String("network")
	m := &onnx.Model{Proto: &onnx.ModelProto{
		IrVersion: proto.Int64(8), Graph: g, OpsetImport: []*onnx.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(13)}},
	}}
	data, err := m.Bytes()
	require.NoError(t, err)
	return data
}

// The levels of an image reach an input of int32, which no engine has, as they are.
func TestImagesForInputsOfInt32(t *testing.T) {
	points := make([]float32, 3*17)
	for i := range points {
		points[i] = []float32{.25, .5, .9 / 200}[i%3] // y, x, and a score of .9 for a level of 200
	}
	points[0], points[1] = .75, .25
	o := quiet(Options{Model: "movenet.onnx", Backend: "onnxruntime=cpu"})
	o.Bytes = file(t, &onnx.GraphProto{
		Input:  []*onnx.ValueInfoProto{onnx.NewValueInfo("input", onnx.TensorProto_INT32, []int64{1, 32, 32, 3})},
		Output: []*onnx.ValueInfoProto{onnx.NewValueInfo("output_0", onnx.TensorProto_FLOAT, []int64{1, 1, 17, 3})},
		Initializer: []*onnx.TensorProto{
			onnx.NewFloats("points", points, 1, 1, 17, 3), onnx.NewFloats("scores", []float32{0, 0, 1}, 3), onnx.NewFloats("places", []float32{
				1, 1,
				0,
			}, 3),
		},
		Node: []*onnx.NodeProto{
			onnx.NewNode("Cast", "levels", []string{"input"}, []string{"levels"}, onnx.Int("to", int64(onnx.TensorProto_FLOAT))),
			onnx.NewNode("ReduceMax", "highest", []string{"levels"}, []string{"highest"}, onnx.Int("keepdims", 0)),
			onnx.NewNode("Mul", "share", []string{"scores", "highest"}, []string{"share"}),
			onnx.NewNode("Add", "factors", []string{"share", "places"}, []string{"factors"}),
			onnx.NewNode("Mul", "scaled", []string{"points", "factors"}, []string{"output_0"}),
		},
	})
	n, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer n.Close()
	assert.Equal(t, "32x32: letterbox, bilinear, pad 0, rgb, 0..255, nhwc (that of movenet: neither the file nor a setting specifies it)",
		Describe(n.Model()).Preprocessing)
	seen, err := Run(n, engine.Image{Data: bytes.Repeat([]byte{200}, 64*64), Width: 64, Height: 64, Stride: 64, Format: engine.GRAY8})
	require.NoError(t, err)
	require.NoError(t, seen[0].Err)
	require.Len(t, seen[0].Detections, 1)
	found := seen[0].Detections[0]
	assert.Equal(t, postprocess.Box{X1: 16, Y1: 16, X2: 32, Y2: 48}, found.Box)
	assert.InDelta(t, .9, found.Score, 1e-5)
	nose, ok := found.Detail.Keypoint("nose")
	require.True(t, ok)
	assert.Equal(t, postprocess.Keypoint{X: 16, Y: 48, Score: nose.Score}, nose)
	assert.Equal(t, 17, n.Model().Recognised.KeypointCount)
}

// PaddleDetection's networks divide their boxes by scale_factor and clip them to im_shape: both are given so that boxes are in input
// pixels.
func TestPaddleInputsAreGiven(t *testing.T) {
	pair := []int64{-1, 2}
	o := quiet(Options{Model: "picodet.onnx", Backend: "onnxruntime=cpu"})
	o.Metadata.Preprocess = engine.Preprocess{Preset: "imagenet"}
	o.Bytes = file(t, &onnx.GraphProto{
		Input: []*onnx.ValueInfoProto{
			onnx.NewValueInfo("im_shape", onnx.TensorProto_FLOAT, pair), onnx.NewValueInfo("image", onnx.TensorProto_FLOAT, []int64{-1, 3, 64, 32}),
			onnx.NewValueInfo("scale_factor", onnx.TensorProto_FLOAT, pair),
		},
		Output: []*onnx.ValueInfoProto{
			onnx.NewValueInfo("rows", onnx.TensorProto_FLOAT, []int64{-1, 6}), onnx.NewValueInfo("count", onnx.TensorProto_INT32, []int64{1}),
		},
		Initializer: []*onnx.TensorProto{
			onnx.NewFloats("row", []float32{2, .9}, 1, 2), onnx.NewFloats("half", []float32{.5}, 1), onnx.NewInt32s("one", []int32{1}, 1),
		},
		Node: []*onnx.NodeProto{
			onnx.NewNode("Div", "shape", []string{"im_shape", "scale_factor"}, []string{"far"}), // 64, 32
			onnx.NewNode("Mul", "near", []string{"far", "half"}, []string{"near"}),              // 32, 16
			onnx.NewNode("Split", "split", []string{"near"}, []string{"y", "x"}, onnx.Int("axis", 1)),
			onnx.NewNode("Sub", "zero", []string{"x", "x"}, []string{"zero"}),
			onnx.NewNode("Concat", "rows", []string{"row", "zero", "zero", "x", "y"}, []string{"rows"}, onnx.Int("axis", 1)),
			onnx.NewNode("Identity", "count", []string{"one"}, []string{"count"}),
		},
	})
	n, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer n.Close()
	seen, err := Run(n, engine.Image{Data: make([]byte, 200*100), Width: 200, Height: 100, Stride: 200, Format: engine.GRAY8})
	require.NoError(t, err)
	require.NoError(t, seen[0].Err)
	want := postprocess.Detection{Box: postprocess.Box{X2: 100, Y2: 50}, Score: 0.9, Class: 2}
	require.Equal(t, []postprocess.Detection{want}, seen[0].Detections)
}

// A network whose file does not say how it takes images takes them as others with its head do, unless somebody says another way.
func TestImagesAreTakenAsTheHeadHasIt(t *testing.T) {
	yolox := exported{[]tensor{out("images", 1, 3, 64, 64)}, []tensor{out("output", 1, 84, 10)}, nil}
	open := exported{[]tensor{out("images", 1, 3, 64, 64)}, []tensor{out("output", 1, -1, 10)}, nil}
	unscaled := exported{[]tensor{out("images:uint8", 1, 3, 64, 64)}, []tensor{out("boxes", 1, 84, 4), out("scores", 1, 84, 5)}, nil}
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
		{"bytes", unscaled, func(*Options) {}, "64x64: letterbox, bilinear, pad 114, rgb, 0..255, nchw (that of yolo-nas" + presumed},
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
