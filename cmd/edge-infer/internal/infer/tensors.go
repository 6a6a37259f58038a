package infer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Tensors runs one request of any model on arrays instead of images.
type Tensors struct {
	Inputs    []string // NAME=FILE, or FILE for a model with one input
	Directory string   // for the output files; empty: none are written
	Window    Window   // sliding window over the input; optional

	Config   *config.Config
	Logger   *slog.Logger
	Progress progress.Reporter
}

// Flags adds the flags of the job.
func (r *Tensors) Flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&r.Inputs, "input", nil, "array for one input of the model, NAME=TENSOR.npy; NAME= may be omitted for a single input")
	r.Window.flags(flags)
	flags.StringVar(&r.Directory, "output-dir", "", "directory for the outputs of --input")
}

// Outputs is the result of a request on arrays.
type Outputs struct {
	Version   int      `json:"v"`
	Model     string   `json:"model"`
	Backend   string   `json:"backend"`
	Inference float64  `json:"inference_ms"`
	Outputs   []Output `json:"outputs"`
}

// Output describes one output tensor.
type Output struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"`
	File  string  `json:"file,omitempty"`
}

// Run runs the model once and writes the outputs.
func (r *Tensors) Run(ctx context.Context) (seen *Outputs, err error) {
	err = r.compute(ctx, func(model *engine.Model, result *engine.Result) error {
		seen, err = r.write(model, result)
		return err
	})
	return seen, err
}

// compute runs the model once and calls each with the result, which is valid during the call only.
func (r *Tensors) compute(ctx context.Context, each func(*engine.Model, *engine.Result) error) error {
	tensors, err := r.read()
	if err != nil {
		return err
	}
	options := network.Options(r.Config, r.Config.Detect.Confidence, r.Logger)
	options.Build, options.TensorInputs = network.PlanBuilder{Progress: r.Progress}.Build, true
	if err := options.Load(); err != nil {
		return err
	}
	options.Slots = 1
	if r.Window.Sides != "" {
		return r.slide(ctx, options, tensors, each)
	}
	if err := fit(&options.Options, tensors); err != nil {
		return err
	}
	raw, err := predict.OpenRaw(ctx, options)
	if err != nil {
		return err
	}
	defer raw.Close()
	model := raw.Model()
	name(tensors, model.Inputs)
	narrow(tensors, model.Inputs)
	result, err := raw.Tensors(tensors...)
	if err != nil {
		return explain(err, model.Inputs)
	}
	return each(&model, result)
}

// read reads the input files in order.
func (r *Tensors) read() ([]engine.Tensor, error) {
	var tensors []engine.Tensor
	for _, input := range r.Inputs {
		name, path, named := strings.Cut(input, "=")
		if !named {
			name, path = "", input
		}
		switch {
		case path == "" || named && name == "":
			return nil, config.Usagef("--input %q must be NAME=TENSOR.npy", input)
		case !named && len(r.Inputs) > 1:
			return nil, config.Usagef("--input %q must be NAME=TENSOR.npy when there are several", input)
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

// fit checks the tensors against the inputs of an ONNX file before a plan is built, and sets the shapes of dynamic inputs. The inputs of an
// engine plan are checked when it runs.
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

// name names a single unnamed tensor after the single input.
func name(tensors []engine.Tensor, inputs []engine.TensorInfo) {
	if len(tensors) == 1 && tensors[0].Name == "" && len(inputs) == 1 {
		tensors[0].Name = inputs[0].Name
	}
}

// narrow converts int64 to int32 if the backend expects that, as TensorRT before 10 does, and all values fit.
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

// explain adds the model's inputs to a shape error.
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

// shapeText formats a shape like 1x3x?x?, with a question mark for a dynamic dimension, and - for a scalar.
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

// write writes the outputs to files and describes them.
func (r *Tensors) write(model *engine.Model, result *engine.Result) (*Outputs, error) {
	seen := &Outputs{Version: 1, Model: model.Path, Backend: model.Backend, Inference: float64(result.Timing.Inference) / 1e6}
	taken := map[string]bool{}
	for i := range result.Outputs {
		out := &result.Outputs[i]
		line := Output{Name: out.Name, Type: out.Type.String(), Shape: out.Shape}
		if r.Directory != "" {
			line.File = r.path(out.Name, taken)
			if err := writeTensor(line.File, out); err != nil {
				return nil, err
			}
		}
		seen.Outputs = append(seen.Outputs, line)
	}
	return seen, nil
}

// Print writes a table of the outputs.
func (o *Outputs) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range o.Outputs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", line.Name, line.Type, shapeText(line.Shape), line.File)
	}
	return table.Flush()
}

// path returns the file of an output: its name with slashes replaced, and a number if that is not unique.
func (r *Tensors) path(name string, taken map[string]bool) string {
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
	return filepath.Join(r.Directory, unique+".npy")
}

func writeTensor(path string, t *engine.Tensor) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	file, err := atomicfile.Create(path, 0o644) // atomic: no partial arrays
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	w := bufio.NewWriter(file)
	if err = errors.Join(engine.WriteNPY(w, t), w.Flush()); err == nil {
		err = file.Commit()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}
