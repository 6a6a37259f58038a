package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// tensorRun is infer on arrays instead of pictures: one request of any model.
type tensorRun struct {
	inputs         []string // NAME=FILE, or FILE for a model with one input
	directory      string   // where the outputs go; empty for nowhere
	json           bool
	stdout, stderr io.Writer
}

// tensorResult is what infer prints of a request of tensors.
type tensorResult struct {
	Version   int            `json:"v"`
	Model     string         `json:"model"`
	Backend   string         `json:"backend"`
	Inference float64        `json:"inference_ms"`
	Outputs   []tensorOutput `json:"outputs"`
}

type tensorOutput struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"`
	File  string  `json:"file,omitempty"`
}

func (r *tensorRun) run(ctx context.Context, c *config.Config) error {
	tensors, err := r.read()
	if err != nil {
		return err
	}
	options, err := modelOptions(c, 1, c.Detect.Confidence)
	if err != nil {
		return err
	}
	options.Slots = 1
	if err := fit(&options, tensors); err != nil {
		return err
	}
	e, err := openEngine(ctx, c, options, newLogger(r.stderr, c.Log), r.stderr)
	if err != nil {
		return err
	}
	defer e.Close()
	model := e.Model()
	name(tensors, model.Inputs)
	narrow(tensors, model.Inputs)
	if err := e.SubmitTensors(0, tensors); err != nil {
		return explain(err, model.Inputs)
	}
	result, err := e.Wait(0)
	if err != nil {
		return err
	}
	return r.report(&model, result)
}

// read reads the files in the order they were given.
func (r *tensorRun) read() ([]engine.Tensor, error) {
	var tensors []engine.Tensor
	for _, input := range r.inputs {
		name, path, named := strings.Cut(input, "=")
		if !named {
			name, path = "", input
		}
		switch {
		case path == "" || named && name == "":
			return nil, usagef("--input %q must be NAME=TENSOR.npy", input)
		case !named && len(r.inputs) > 1:
			return nil, usagef("--input %q must be NAME=TENSOR.npy when there are several", input)
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		tensor, err := engine.ReadNPY(file)
		_ = file.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", path, err)
		}
		tensor.Name = name
		tensors = append(tensors, tensor)
	}
	return tensors, nil
}

// fit compares the tensors with what an ONNX file takes, before a plan is built for them, and asks for a plan of their shapes where the file
// leaves those open. A plan says for itself what it takes.
func fit(options *engine.Options, tensors []engine.Tensor) error {
	if tensorrt.IsPlan(options.Bytes) {
		return nil
	}
	file, err := onnx.Parse(options.Path, options.Bytes)
	if err != nil {
		return err
	}
	inputs, err := file.Inputs()
	if err != nil {
		return err
	}
	name(tensors, inputs)
	if err := engine.CheckTensors(inputs, tensors); err != nil {
		return explain(err, inputs)
	}
	batch := 1
	for _, info := range inputs {
		if !slices.Contains(info.Shape, -1) {
			continue
		}
		given := tensors[slices.IndexFunc(tensors, func(t engine.Tensor) bool { return t.Name == info.Name })].Shape
		batch = max(batch, int(given[0]))
		if slices.Contains(info.Shape[1:], -1) {
			options.Shapes = append(options.Shapes, engine.TensorInfo{Name: info.Name, Type: info.Type, Shape: given})
		}
	}
	options.MaxBatch = batch
	return nil
}

// name gives the only tensor the name of the only input where it has none.
func name(tensors []engine.Tensor, inputs []engine.TensorInfo) {
	if len(tensors) == 1 && tensors[0].Name == "" && len(inputs) == 1 {
		tensors[0].Name = inputs[0].Name
	}
}

// narrow turns int64 into int32 where the backend takes that instead, as TensorRT before 10 does, and every number fits.
func narrow(tensors []engine.Tensor, inputs []engine.TensorInfo) {
	for i := range tensors {
		t := &tensors[i]
		takes := slices.ContainsFunc(inputs, func(info engine.TensorInfo) bool { return info.Name == t.Name && info.Type == engine.Int32 })
		if t.Type != engine.Int64 || !takes {
			continue
		}
		data := make([]byte, 0, len(t.Data)/2)
		for number := range slices.Chunk(t.Data, t.Type.Size()) {
			n := int64(binary.LittleEndian.Uint64(number))
			if n < math.MinInt32 || n > math.MaxInt32 {
				data = nil
				break
			}
			data = binary.LittleEndian.AppendUint32(data, uint32(n))
		}
		if data != nil {
			t.Type, t.Data = engine.Int32, data
		}
	}
}

// explain lists what the model takes behind an error about a tensor.
func explain(err error, inputs []engine.TensorInfo) error {
	if !errors.Is(err, engine.ErrShape) {
		return err
	}
	var takes []string
	for _, info := range inputs {
		takes = append(takes, fmt.Sprintf("%s %v %s", info.Name, info.Type, shapeText(info.Shape)))
	}
	return fmt.Errorf("%w (the model takes %s)", err, strings.Join(takes, ", "))
}

// shapeText writes 1x3x?x?, with a question mark where the size may vary, and - for a single number.
func shapeText(shape []int64) string {
	if len(shape) == 0 {
		return "-"
	}
	sides := make([]string, len(shape))
	for d, n := range shape {
		sides[d] = fmt.Sprint(n)
		if n < 0 {
			sides[d] = "?"
		}
	}
	return strings.Join(sides, "x")
}

// report writes the outputs' files and says what they are.
func (r *tensorRun) report(model *engine.Model, result *engine.Result) error {
	seen := tensorResult{Version: 1, Model: model.Path, Backend: model.Backend, Inference: float64(result.Timing.Inference) / 1e6}
	taken := map[string]bool{}
	for i := range result.Outputs {
		out := &result.Outputs[i]
		line := tensorOutput{Name: out.Name, Type: out.Type.String(), Shape: out.Shape}
		if r.directory != "" {
			line.File = r.path(out.Name, taken)
			if err := writeTensor(line.File, out); err != nil {
				return err
			}
		}
		seen.Outputs = append(seen.Outputs, line)
	}
	if r.json {
		return json.NewEncoder(r.stdout).Encode(seen)
	}
	table := tabwriter.NewWriter(r.stdout, 0, 0, 2, ' ', 0)
	for _, out := range seen.Outputs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", out.Name, out.Type, shapeText(out.Shape), out.File)
	}
	return table.Flush()
}

// path is the file of an output: its name, with what a file name cannot hold replaced and a number where two become the same.
func (r *tensorRun) path(name string, taken map[string]bool) string {
	base := strings.Map(func(c rune) rune {
		if c == '/' || c == 0 {
			return '_'
		}
		return c
	}, name)
	unique := base
	for n := 2; taken[unique]; n++ {
		unique = fmt.Sprintf("%s_%d", base, n)
	}
	taken[unique] = true
	return filepath.Join(r.directory, unique+".npy")
}

func writeTensor(path string, t *engine.Tensor) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	w := bufio.NewWriter(file)
	err = errors.Join(engine.WriteNPY(w, t), w.Flush())
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path) // half an array is none
		return fmt.Errorf("output: %w", err)
	}
	return nil
}
