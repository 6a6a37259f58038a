package predict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// graph is a network whose only node makes its output of images of 64x48.
func graph(t *testing.T, node *onnx.NodeProto, kind onnx.TensorProto_DataType, shape []int64, about map[string]string) []byte {
	t.Helper()
	g := &onnx.GraphProto{Name: proto.String("map"), Node: []*onnx.NodeProto{node}}
	g.Input = []*onnx.ValueInfoProto{onnx.NewValueInfo("images", onnx.TensorProto_FLOAT, []int64{1, 3, 48, 64})}
	g.Output = []*onnx.ValueInfoProto{onnx.NewValueInfo(node.Output[0], kind, shape)}
	m := &onnx.Model{Proto: &onnx.ModelProto{
		IrVersion: proto.Int64(8), Graph: g, OpsetImport: []*onnx.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(13)}},
	}}
	for key, value := range about {
		m.SetMetadata(key, value)
	}
	data, err := m.Bytes()
	require.NoError(t, err)
	return data
}

// stripes is an image whose left, middle and right quarters of its width are red, green and blue, the last one black.
func stripes(width, height int) engine.Image {
	data := make([]byte, width*height*3)
	for y := range height {
		for x := range width {
			if colour := 4 * x / width; colour < 3 {
				data[(y*width+x)*3+2-colour] = 255
			}
		}
	}
	return engine.Image{Data: data, Width: width, Height: height, Stride: 3 * width, Format: engine.BGR}
}

// The network of these tests takes the levels of red, green and blue for the scores of three classes, or their mean for the depth.
func TestMapsOfNetworks(t *testing.T) {
	letterbox := map[string]string{"task": "semantic", "names": "{0: 'red', 1: 'green', 2: 'blue'}"}
	stretch := map[string]string{"task": "depth", "names": "{0: 'depth'}"}
	for name, c := range map[string]struct {
		model  []byte
		rows   int // of the map, for images of 100x50
		depths bool
	}{
		"scores": {
			model: graph(t, onnx.NewNode("Identity", "same", []string{"images"}, []string{"out"}), onnx.TensorProto_FLOAT,
				[]int64{1, 3, 48, 64}, letterbox),
			rows: 32,
		},
		"class numbers": {
			model: graph(t, onnx.NewNode("ArgMax", "best", []string{"images"}, []string{"out"}, onnx.Int("axis", 1), onnx.Int("keepdims", 0)),
				onnx.TensorProto_INT64, []int64{1, 48, 64}, letterbox),
			rows: 32,
		},
		"depths": {
			model: graph(t, onnx.NewNode("ReduceMean", "mean", []string{"images"}, []string{"out"}, onnx.Ints("axes", 1)), onnx.TensorProto_FLOAT,
				[]int64{1, 1, 48, 64}, stretch),
			rows: 48, depths: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := Open(t.Context(), quiet(Options{Model: name + ".onnx", Backend: "onnxruntime=cpu", Options: engine.Options{Bytes: c.model}}))
			require.NoError(t, err)
			defer n.Close()
			img := stripes(100, 50)
			seen, err := Run(n, img, img)
			require.NoError(t, err)
			require.Len(t, seen, 2)
			for _, p := range seen {
				require.NoError(t, p.Err)
				require.Empty(t, p.Detections)
				m := p.Map
				require.NotNil(t, m)
				assert.Equal(t, 64, m.Width)
				assert.Equal(t, c.rows, m.Height, "the bars of the letterbox are not in it")
				for x := 2; x < 100; x += 12 { // away from the edges between colours
					column, row := m.CellAt(x, 25)
					colour := 4 * x / 100
					if c.depths {
						assert.InDelta(t, map[bool]float32{true: 1. / 3}[colour < 3], m.Depths[row*64+column], 1e-5, x)
						continue
					}
					assert.Equal(t, uint8(colour%3), m.Classes[row*64+column], x) // of equal scores the first
				}
			}
		})
	}
}
