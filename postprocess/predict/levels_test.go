package predict

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// nanodetOf is a NanoDet of 96x64 with 3 classes whose head is random: its scales as outputs of their own, in no order at all, or joined.
// Four scales that are apart are a PicoDet's.
func nanodetOf(t *testing.T, scales int, apart, batch bool) []byte {
	const classes, bins = 3, 32
	b := testnet.NewBuilder(7)
	x := b.Input("images", 1, 3, 64, 96)
	flat := func(name, x string, channels int64) string {
		x = b.Node("Reshape", name, []string{x, b.Ints(name+".shape", 1, channels, -1)})
		return b.Node("Transpose", name, []string{x}, onnx.Ints("perm", 0, 2, 1))
	}
	var rows []string
	var outputs []func()
	cells := int64(0)
	for i, stride := range []int64{8, 16, 32, 64}[:scales] {
		n := (64 + stride - 1) / stride * ((96 + stride - 1) / stride)
		scores := b.Node("Sigmoid", "/scores", []string{b.Conv("/cls", x, testnet.Convolution{In: 3, Out: classes, Kernel: 1, Stride: stride})})
		scores = flat(fmt.Sprintf("/a%d", i), scores, classes)
		distances := flat(fmt.Sprintf("/b%d", i), b.Conv("/reg", x, testnet.Convolution{In: 3, Out: bins, Kernel: 1, Stride: stride}), bins)
		outputs = append(outputs, func() { b.Output(distances, 1, n, bins) }, func() { b.Output(scores, 1, n, classes) })
		if !batch {
			outputs[2*i] = func() { b.Output(b.Node("Reshape", "/e", []string{distances, b.Ints("/n", n, bins)}), n, bins) }
			outputs[2*i+1] = func() { b.Output(b.Node("Reshape", "/f", []string{scores, b.Ints("/m", n, classes)}), n, classes) }
		}
		cells += n
		rows = append(rows, b.Node("Concat", "/row", []string{scores, distances}, onnx.Int("axis", 2)))
	}
	if apart {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(outputs), func(i, j int) { outputs[i], outputs[j] = outputs[j], outputs[i] })
		for _, output := range outputs {
			output()
		}
	} else {
		b.Output(b.Node("Concat", "/all", rows, onnx.Int("axis", 1)), 1, cells, classes+bins)
	}
	m := b.Model(17)
	m.SetMetadata("names", "['a', 'b', 'c']")
	data, err := proto.Marshal(m.Proto)
	require.NoError(t, err)
	return data
}

// TestScalesThatAreApartAreJoined: a network that gives each scale by itself finds what the same network finds that joins them.
func TestScalesThatAreApartAreJoined(t *testing.T) {
	img := engine.Image{Data: make([]byte, 3*96*64), Width: 96, Height: 64, Stride: 3 * 96, Format: engine.BGR}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range img.Data {
		img.Data[i] = byte(random.Uint32())
	}
	for scales, layout := range map[int]head.Layout{3: head.LayoutNanoDet, 4: head.LayoutPicoDet} {
		var found [3][]Result
		for i, apart := range []bool{false, true, true} {
			o := quiet(Options{Model: "nanodet.onnx", Backend: "onnxruntime=cpu", Decoding: Decoding{MinScore: 0.55}})
			o.Bytes = nanodetOf(t, scales, apart, i < 2)
			if !apart {
				o.Decoding.Layout = layout
			}
			n, err := Open(t.Context(), o)
			require.NoError(t, err)
			defer n.Close()
			require.EqualValues(t, layout, n.Model().Recognised.Layout)
			require.Len(t, n.Model().Outputs, 1)
			found[i], err = Run(n, img)
			require.NoError(t, err)
			require.NoError(t, found[i][0].Err)
		}
		require.Greater(t, len(found[0][0].Detections), 5)
		require.Equal(t, found[0][0].Detections, found[1][0].Detections)
		require.Equal(t, found[0][0].Detections, found[2][0].Detections, "without a batch")
	}

	o := quiet(Options{Model: "nanodet.onnx", Backend: "onnxruntime=cpu", TensorInputs: true})
	o.Bytes = nanodetOf(t, 4, true, true)
	e, err := OpenRaw(t.Context(), o)
	require.NoError(t, err)
	defer e.Close()
	require.Len(t, e.Model().Outputs, 8, "arrays come as the file has them")
}

// What only looks like scales that are apart is left as it is.
func TestWhatHasNoScales(t *testing.T) {
	out := func(shape ...int64) engine.TensorInfo { return engine.TensorInfo{Type: engine.Float32, Shape: shape} }
	scales := []engine.TensorInfo{
		out(1, 96, 32), out(1, 24, 32), out(1, 6, 32), out(1, 2, 32), out(1, 96, 80), out(1, 24, 80), out(1, 6, 80), out(1, 2, 80),
	}
	require.Len(t, levels(scales, 96, 64), 4)
	require.Nil(t, levels(scales[:6], 96, 64))
	require.Nil(t, levels(scales, 64, 64))
	require.Nil(t, levels(nil, 96, 64))
	for i := range scales {
		changed := append([]engine.TensorInfo{}, scales...)
		changed[i] = out(1, changed[i].Shape[1], 81)
		require.Nil(t, levels(changed, 96, 64))
		changed[i] = out(1, changed[i].Shape[1], 4, 1)
		require.Nil(t, levels(changed, 96, 64))
	}
}

// A file that keeps its weights beside it gets what it wants as well.
func TestNetworksWithWeightsBesideThemGetTheirSizes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d-fine.onnx")
	m, err := onnx.Parse(path, sizedNetwork(t))
	require.NoError(t, err)
	shares := m.Proto.Graph.Initializer[0]
	require.NoError(t, os.WriteFile(filepath.Join(dir, "weights.bin"), shares.RawData, 0o600))
	shares.RawData, shares.DataLocation = nil, onnx.TensorProto_EXTERNAL.Enum()
	shares.ExternalData = []*onnx.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("weights.bin")}}
	data, err := m.Bytes()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	n, err := Open(t.Context(), quiet(Options{Model: path, Backend: "onnxruntime=cpu"}))
	require.NoError(t, err)
	defer n.Close()
	seen, err := Run(n, engine.Image{Data: make([]byte, 200*100), Width: 200, Height: 100, Stride: 200, Format: engine.GRAY8})
	require.NoError(t, err)
	require.Len(t, seen[0].Detections, 1)
	require.EqualValues(t, 50, seen[0].Detections[0].X1)

	require.NoError(t, os.Remove(filepath.Join(dir, "weights.bin")))
	_, err = Open(t.Context(), quiet(Options{Model: path, Backend: "onnxruntime=cpu"}))
	require.ErrorContains(t, err, "weights.bin")
}
