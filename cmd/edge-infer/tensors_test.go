package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// writeNetwork puts a test network into a file.
func writeNetwork(t *testing.T, name string) string {
	options := enginetest.Network(t, name)
	path := filepath.Join(t.TempDir(), options.Path)
	require.NoError(t, os.WriteFile(path, options.Bytes, 0o600))
	return path
}

// writeArray puts numbers of any fixed-size type into a .npy file.
func writeArray(t *testing.T, name string, kind engine.DataType, shape []int64, numbers any) string {
	tensor := engine.Tensor{Type: kind, Shape: shape}
	var err error
	tensor.Data, err = binary.Append(nil, binary.LittleEndian, numbers)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name+".npy")
	var file bytes.Buffer
	require.NoError(t, engine.WriteNPY(&file, &tensor))
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	return path
}

func readArray(t *testing.T, path string) *engine.Tensor {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	tensor, err := engine.ReadNPY(bytes.NewReader(data))
	require.NoError(t, err)
	return &tensor
}

// Two inputs of different types and ranks with free dimensions besides the first one, three outputs of three types.
func TestInferOnTensors(t *testing.T) {
	t.Parallel()
	values := writeArray(t, "values", engine.Float32, []int64{2, 2, 3}, []float32{1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, 0})
	ids := writeArray(t, "ids", engine.Int64, []int64{3}, []int64{10, 20, 30})
	out := filepath.Join(t.TempDir(), "out")
	output := programtest.Output(t, "infer", "--model", writeNetwork(t, "tensors"), "--input", "values="+values, "--input", "ids="+ids,
		"--output-dir", out,
		"--engine", "onnxruntime", "--json")
	var result infer.Outputs
	require.NoError(t, json.Unmarshal(output, &result))
	require.Equal(t, []infer.Output{
		{Name: "product", Type: "float32", Shape: []int64{2, 2, 3}, File: filepath.Join(out, "product.npy")},
		{Name: "size", Type: "int64", Shape: []int64{3}, File: filepath.Join(out, "size.npy")},
		{Name: "positive", Type: "bool", Shape: []int64{2, 2, 3}, File: filepath.Join(out, "positive.npy")},
	}, result.Outputs)
	product := readArray(t, result.Outputs[0].File)
	require.Equal(t, []float32{10, 40, 90, 40, 100, 180, -10, -40, -90, -40, -100, 0}, product.Float32s())
	require.Equal(t, []byte{2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}, readArray(t, result.Outputs[1].File).Data)
	require.Equal(t, []byte{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}, readArray(t, result.Outputs[2].File).Data)

	output = programtest.Output(t, "infer", "--model", writeNetwork(t, "varying"), "--input",
		writeArray(t, "x", engine.Float32, []int64{8}, []float32{0, 1, 0, 0, 2, 0, 0, 0}))
	require.Equal(t, "where  int64  1x2  \n", string(output))
}

// Eight dimensions and the small types.
func TestInferOnEightDimensions(t *testing.T) {
	t.Parallel()
	args := []string{"infer", "--model", writeNetwork(t, "eight"), "--engine", "onnxruntime", "--output-dir", t.TempDir()}
	shape := []int64{1, 2, 1, 2, 1, 2, 1, 2}
	numbers := map[string]any{}
	for name, kind := range map[string]engine.DataType{
		"a": engine.Int8, "b": engine.Uint8, "c": engine.Int32, "d": engine.Bool, "e": engine.Float16,
	} {
		data := make([]byte, 16*kind.Size())
		for i := range data {
			data[i] = byte(i % 2)
		}
		numbers[name+"_out"] = data
		args = append(args, "--input", name+"="+writeArray(t, name, kind, shape, data))
	}
	programtest.Output(t, args...)
	for name, want := range numbers {
		got := readArray(t, filepath.Join(args[6], name+".npy"))
		require.Equal(t, shape, got.Shape)
		require.Equal(t, want, got.Data, name)
	}
}

// TensorRT builds a plan of the tensors' shapes, keeps it, and takes no others with it.
func TestInferOnTensorsByTensorRT(t *testing.T) {
	t.Parallel()
	environment, _ := programtest.FakeMachine(t, 100300)
	options := enginetest.Network(t, "tensors")
	description := fake.Model{
		Network: "tensors", Operators: []string{"Mul"},
		Inputs: []engine.TensorInfo{
			{Name: "values", Type: engine.Float32, Shape: []int64{-1, 2, -1}}, {Name: "ids", Type: engine.Int64, Shape: []int64{-1}},
		},
		Outputs: []engine.TensorInfo{
			{Name: "product", Type: engine.Float32, Shape: []int64{-1, 2, -1}},
			{Name: "size", Type: engine.Int64, Shape: []int64{3}},
			{Name: "positive", Type: engine.Bool, Shape: []int64{-1, 2, -1}},
		},
	}
	network := filepath.Join(t.TempDir(), "tensors.onnx")
	require.NoError(t, os.WriteFile(network, append(options.Bytes, description.Bytes()...), 0o600))
	values := writeArray(t, "values", engine.Float32, []int64{2, 2, 1}, []float32{1, 2, 3, 4})
	ids := writeArray(t, "ids", engine.Int64, []int64{1}, []int64{10})
	out := t.TempDir()
	run := func(args ...string) (string, error) {
		output, err := programtest.CommandWith(t, append(environment, "XDG_CACHE_HOME="+out), append([]string{
			"infer", "--input", "values=" + values, "--input", "ids=" + ids, "--output-dir", out, "--engine", "tensorrt",
		}, args...)...).CombinedOutput()
		return string(output), err
	}
	output, err := run("--model", network)
	require.NoError(t, err, output)
	require.Contains(t, output, "building the engine plan")
	require.Equal(t, []float32{10, 20, 30, 40}, readArray(t, filepath.Join(out, "product.npy")).Float32s())
	output, err = run("--model", network)
	require.NoError(t, err, output)
	require.NotContains(t, output, "building the engine plan")

	// A plan says what it takes.
	plan := filepath.Join(t.TempDir(), "tensors.plan")
	_, text, err := buildOf(t, environment, network, "--shape", "values=1x2x1,1x2x2,1x2x3", "--shape", "ids=1,2,3", "-o", plan)
	require.NoError(t, err, text)
	output, err = run("--model", plan, "--log", "error")
	require.Error(t, err)
	require.Equal(t, "edge-infer: tensorrt submit: dimension 0 of input values is 2, the plan takes 1 to 1 (build the plan for these shapes) "+
		"(the model takes values float32 ?x2x?, ids int64 ?)\n", output)
	values = writeArray(t, "values", engine.Float32, []int64{1, 2, 1}, []float32{1, 2})
	output, err = run("--model", plan)
	require.NoError(t, err, output)
	require.Equal(t, []float32{10, 20}, readArray(t, filepath.Join(out, "product.npy")).Float32s())
}

func TestInferOnTensorsRefuses(t *testing.T) {
	t.Parallel()
	network := writeNetwork(t, "tensors")
	values := writeArray(t, "values", engine.Float32, []int64{1, 2, 1}, []float32{1, 2})
	ids := writeArray(t, "ids", engine.Int64, []int64{1}, []int64{1})
	const takes = " (the model takes values float32 ?x2x?, ids int64 ?)\n"
	const usage = "; see edge-infer infer --help\n"
	noArray := filepath.Join(t.TempDir(), "x.npy")
	require.NoError(t, os.WriteFile(noArray, []byte("hello"), 0o600))
	for want, args := range map[string][]string{
		`submit: input "ids" is missing` + takes: {"--input", "values=" + values},
		`submit: the model has no input "more"` + takes: {"--input", "values=" + values, "--input", "ids=" +
			ids, "--input", "more=" + ids},
		`submit: input "values" is given twice` + takes: {"--input", "values=" + values, "--input", "values=" +
			values},
		`submit: input "values" is int64, the model takes float32` + takes:                                {"--input", "values=" + ids, "--input", "ids=" + ids},
		`submit: input "values" is missing` + takes:                                                       {"--input", values},
		"input " + noArray + ": not a .npy file, as numpy.save writes it\n":                               {"--input", noArray},
		"input: open /none.npy: no such file or directory\n":                                              {"--input", "values=/none.npy"},
		`--input "x" must be NAME=TENSOR.npy when there are several` + usage:                              {"--input", "x", "--input", "ids=" + ids},
		`--input "ids=" must be NAME=TENSOR.npy` + usage:                                                  {"--input", "ids="},
		"infer takes images or --input, not both" + usage:                                                 {"--input", "ids=" + ids, "a.jpg"},
		"--output-dir is for --input" + usage:                                                             {"a.jpg", "--output-dir", "x"},
		"--save, --format and --output are for images, the outputs of --input go to --output-dir" + usage: {"--input", "ids=" + ids, "--save", "x"},
		"output: mkdir /proc/none: no such file or directory\n": {"--input", "values=" + values, "--input", "ids=" +
			ids, "--output-dir", "/proc/none", "--log", "error"},
		`submit: input "values" has shape [1], the model takes [-1 2 -1]` +
			takes: {"--input", "values=" + writeArray(t, "x", engine.Float32, []int64{1}, []float32{1}), "--input", "ids=" + ids},
		`submit: input "values" has shape [1 3 1], the model takes [-1 2 -1]` +
			takes: {"--input", "values=" + writeArray(t, "x", engine.Float32, []int64{1, 3, 1}, []float32{1, 2, 3}), "--input", "ids=" + ids},
	} {
		c := programtest.Command(t, append([]string{"infer", "--model", network}, args...)...)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		require.Error(t, c.Run())
		require.Equal(t, "edge-infer: "+want, stderr.String())
	}
}

// TestAVolumeThroughAWindow equals the whole at once, where the padding inside the network does not reach.
func TestAVolumeThroughAWindow(t *testing.T) {
	t.Parallel()
	b := testnet.NewBuilder(5)
	x := b.Input("volume", -1, 1, -1, -1, -1)
	conv := func(name, x string, in, out int64) string {
		return b.Node("Conv", name, []string{x, b.Random(name+".weight", 0, 0.2, out, in, 3, 3, 3)}, onnx.Ints("pads", 1, 1, 1, 1, 1, 1),
			onnx.Ints("kernel_shape", 3, 3, 3))
	}
	y := conv("last", b.Node("Relu", "act", []string{conv("first", x, 1, 4)}), 4, 1)
	b.Output(y, -1, 1, -1, -1, -1)
	data, err := b.Model(17).Bytes()
	require.NoError(t, err)
	dir := t.TempDir()
	model := filepath.Join(dir, "smooth.onnx")
	require.NoError(t, os.WriteFile(model, data, 0o600))
	shape := []int64{1, 1, 40, 33, 48}
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, engine.Elements(shape))
	for i := range values {
		values[i] = random.Float32()
	}
	volume := writeArray(t, "volume", engine.Float32, shape, values)
	run := func(flags ...string) []float32 {
		out := filepath.Join(dir, "out")
		output := programtest.Output(t, append([]string{"infer", "--model", model, "--input", volume, "--output-dir", out, "--json"},
			flags...)...)
		var result infer.Outputs
		require.NoError(t, json.Unmarshal(output, &result))
		require.Equal(t, shape, result.Outputs[0].Shape)
		return readArray(t, result.Outputs[0].File).Float32s()
	}
	whole := run()
	for _, flags := range [][]string{
		{"--window", "16x16x16", "--overlap", "0.5"}, {"--window", "24x20x24", "--margin", "2", "--blend", "linear", "--batch", "3"},
	} {
		got := run(flags...)
		for i := range whole {
			require.InDelta(t, whole[i], got[i], 1e-4)
		}
	}
	output, err := programtest.Command(t, "infer", "--model", model, "--input", volume, "--window", "64x").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), `--window "64x" must be sides like 64x64x64 or 512x512`)
	output, err = programtest.Command(t, "infer", "--model", model, "--input", volume, "--window", "65536x65536x65536").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "--window: a window of [65536 65536 65536], must be 268435456 elements at most; see")
	require.Len(t, run("--window", "64x64x64"), len(whole), "what is smaller than the window keeps its sides")
}
