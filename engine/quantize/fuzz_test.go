package quantize_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"google.golang.org/protobuf/proto"
)

// Every conversion of any file ends with a readable model or an error.
func FuzzConvert(f *testing.F) {
	shared, err := os.ReadFile("testdata/shared.onnx")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(shared)
	int8, err := os.ReadFile("testdata/shared_int8.onnx")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(int8)
	detector, err := testnet.YOLO{Size: 32, Wide: 2, Classes: 2, Norms: true}.V11().Bytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(detector)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse("fuzz", data)
		if err != nil {
			return
		}
		convert(t, m, len(data))
	})
}

// convert runs a model through every conversion; variant selects the options.
func convert(t *testing.T, m *onnx.Model, variant int) {
	m.Infer()
	raised := m.Clone()
	_ = raised.RaiseOpset(19) // whether it can be raised does not matter
	check(t, raised)
	half := m.Clone()
	if _, err := quantize.ConvertFP16(half, quantize.FP16Options{ConvertIO: variant%2 == 0, ConvertTail: true}); err == nil {
		check(t, half)
	}
	prepared, err := quantize.Prepare(m)
	if err != nil {
		return
	}
	for _, target := range []quantize.Target{quantize.TensorRT, quantize.ONNXRuntime} {
		p, err := quantize.NewPlan(prepared, quantize.Options{
			Target: target, QuantizeHead: true, QuantizeNarrow: true, StoreInt8: variant%3 == 0, ReduceRange: variant%2 == 0,
		})
		if err != nil {
			return
		}
		if converted, err := p.Apply(uniform(p, 3)); err == nil {
			check(t, converted)
		}
	}
	exposed, _ := quantize.Expose(prepared, quantize.AllTensors(prepared))
	check(t, exposed)
}

func check(t *testing.T, m *onnx.Model) {
	data, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := onnx.Parse("again", data); err != nil {
		t.Fatal(err)
	}
}

// mutate corrupts a model so that it still parses.
func mutate(m *onnx.Model, random *rand.Rand) {
	g := m.Proto.Graph
	extremes := []int64{-1 << 63, -2, -1, 0, 1, 2, 3, 1 << 31, 1 << 40, 1<<63 - 1}
	operators := []string{
		"Conv", "ConvTranspose", "Gemm", "MatMul", "Concat", "Split", "Slice", "Gather", "Reshape", "Transpose", "Resize", "Pad", "Tile",
		"Expand", "TopK", "Range", "Constant", "ConstantOfShape", "Shape", "Squeeze", "Unsqueeze", "ReduceMean", "ArgMax", "GatherND",
		"DepthToSpace", "SpaceToDepth", "MaxPool", "Cast", "QuantizeLinear", "DequantizeLinear", "BatchNormalization", "Softmax", "Add", "Where",
		"Flatten", "RoiAlign", "GridSample", "Unknown",
	}
	for range 1 + random.IntN(8) {
		n := g.Node[random.IntN(len(g.Node))]
		t := g.Initializer[random.IntN(len(g.Initializer))]
		switch random.IntN(12) {
		case 0:
			n.Input = n.Input[:random.IntN(len(n.Input)+1)]
		case 1:
			n.Output = n.Output[:random.IntN(len(n.Output)+1)]
		case 2:
			n.OpType = &operators[random.IntN(len(operators))]
		case 3:
			if len(n.Input) > 0 {
				other := g.Node[random.IntN(len(g.Node))]
				n.Input[random.IntN(len(n.Input))] = other.Out(0)
			}
		case 4:
			for _, a := range n.Attribute {
				for i := range a.Ints {
					a.Ints[i] = extremes[random.IntN(len(extremes))]
				}
				if a.I != nil {
					a.I = &extremes[random.IntN(len(extremes))]
				}
			}
		case 5:
			n.Attribute = nil
		case 6:
			t.Dims = append(t.Dims, extremes[random.IntN(len(extremes))])
		case 7:
			t.Dims = t.Dims[:random.IntN(len(t.Dims)+1)]
		case 8:
			t.RawData = t.RawData[:random.IntN(len(t.RawData)+1)]
		case 9:
			kind := int32(random.IntN(25))
			t.DataType = &kind
		case 10:
			values := make([]int64, random.IntN(6))
			for i := range values {
				values[i] = extremes[random.IntN(len(extremes))]
			}
			name := t.GetName()
			proto.Reset(t)
			proto.Merge(t, onnx.NewInts(name, values, int64(len(values))))
		case 11:
			g.Input[0] = onnx.NewValueInfo("images", onnx.TensorProto_FLOAT, extremes[:random.IntN(8)])
		}
	}
}

// convertBroken corrupts one of the models and runs it through every conversion.
func convertBroken(t *testing.T, models []*onnx.Model, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	m := models[seed%uint64(len(models))].Clone()
	mutate(m, random)
	data, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	m, err = onnx.Parse("broken", data)
	if err == nil {
		convert(t, m, int(seed%6))
	}
}

// FuzzConvertBroken uses networks of a dozen nodes for a thousand executions per second.
func FuzzConvertBroken(f *testing.F) {
	var models []*onnx.Model
	for _, name := range []string{"testdata/shared.onnx", "testdata/shared_int8.onnx"} {
		m, err := onnx.Read(name)
		if err != nil {
			f.Fatal(err)
		}
		models = append(models, m)
	}
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { convertBroken(t, models, seed) })
}

// TestConvertBroken does the same with whole detectors.
func TestConvertBroken(t *testing.T) {
	models := []*onnx.Model{
		testnet.YOLO{Size: 32, Wide: 2, Classes: 2, Norms: true}.V11(), testnet.YOLO{Size: 32, Wide: 2, Classes: 2, Dynamic: true}.V8(),
	}
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			convertBroken(t, models, seed)
		})
	}
}
