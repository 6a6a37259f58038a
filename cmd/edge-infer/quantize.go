package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

const (
	calibrationPictures = 500 // more change the ranges of a detector little
	heldOutPictures     = 1000
	sensitivityPictures = 8
	tableVersion        = 8601 // of TensorRT in the head of a calibration table; build writes that of the release it finds instead
)

func newQuantize(stdout, stderr io.Writer) *cobra.Command {
	q := &quantization{stderr: stderr}
	var asJSON bool
	command := &cobra.Command{
		Use: "quantize [MODEL.onnx] --images DIR -o OUT.onnx", Short: "Write an INT8 or FP16 model that detects as well as the original", Args: atMostOneModel,
		Long: `Runs the model, or the demo model, on pictures like those of service, measures what its tensors hold, and writes an ONNX file with
QuantizeLinear and DequantizeLinear nodes (INT8) or float16 tensors that TensorRT and ONNX Runtime take. The gate then compares the detections
of both models on pictures that were not calibrated on: those of --data, with their labels where it has some, else the rest of --images. A model
that does not match is not written. The verdict goes to OUT.onnx` + verdictSuffix + `.

  edge-infer quantize yolo11n.onnx --images calibration/ --data labelled/ -o yolo11n-int8.onnx
  edge-infer quantize --images pictures/ --to fp16 -o demo-fp16.onnx`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				q.model = args[0]
			}
			if err := q.check(); err != nil {
				return err
			}
			result, err := q.run(command.Context())
			if result == nil {
				return err
			}
			if q.report != "" {
				err = errors.Join(err, result.save(q.report))
			}
			if asJSON {
				return errors.Join(err, json.NewEncoder(stdout).Encode(result))
			}
			return errors.Join(err, result.print(stdout))
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&q.images, "images", "", "directory of calibration pictures, subdirectories included")
	flags.StringVarP(&q.output, "output", "o", "", "ONNX file to write")
	flags.StringVar(&q.to, "to", string(engine.INT8), "int8 or fp16")
	flags.StringVar(&q.method, "method", string(quantize.DefaultMethod), "how INT8 ranges are chosen: minmax, percentile, entropy or mse")
	flags.Float64Var(&q.percentile, "percentile", quantize.DefaultPercentile, "share of the values that --method percentile keeps, in percent")
	flags.IntVar(&q.count, "count", 0, fmt.Sprintf("number of calibration pictures, drawn with --seed; 0 for up to %d, a fifth held out without --data", calibrationPictures))
	flags.Uint64Var(&q.seed, "seed", 1, "which pictures are drawn")
	flags.IntVar(&q.batch, "calibration-batch", 1, "calibration pictures that run at once, for a model that leaves its batch open")
	flags.StringVar(&q.cache, "calibration-cache", "", "file that keeps the measured ranges; a table of TensorRT is read too")
	flags.StringVar(&q.table, "calibration-table", "", "file for the ranges as TensorRT's own calibration table, which its calibrators and trtexec --calib read")
	flags.StringSliceVar(&q.exclude, "exclude", nil, "layers that stay in floating point: names, patterns with * and ?, or operators")
	flags.BoolVar(&q.compact, "compact", false, "store INT8 weights as such, a quarter of the size; TensorRT 8 prefers the other form")
	flags.BoolVar(&q.search, "search", false, "leave the layers in floating point that cost the most until the gate passes")
	flags.StringVar(&q.data, "data", "", "directory of pictures that the gate judges on, with labels if possible")
	q.gate.flags(flags, quantize.DefaultMatchRate)
	flags.StringVar(&q.report, "report", "", "JSON file for all that was found, layer by layer; written for a refused model too")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	flags.SetNormalizeFunc(synonyms(map[string]string{"calibration-count": "count", "calibration-method": "method"}))
	return command
}

// atMostOneModel takes a model's file or nothing.
func atMostOneModel(command *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes one model, not %d", command.Name(), len(args))
	}
	return nil
}

// quantization converts one model.
type quantization struct {
	model, images, data, output, to, method, cache, table, report string
	percentile                                                    float64
	gate                                                          gateLimits
	count, batch                                                  int
	seed                                                          uint64
	exclude                                                       []string
	compact, search                                               bool
	stderr                                                        io.Writer
}

// quantized is what quantize prints and reports.
type quantized struct {
	Version      int                   `json:"v"`
	Model        string                `json:"model"`
	Output       string                `json:"output,omitempty"` // empty when the gate refused
	Precision    engine.Precision      `json:"precision"`
	Method       quantize.Method       `json:"method,omitempty"`
	ModelBytes   int                   `json:"model_bytes"`
	OutputBytes  int                   `json:"output_bytes"`
	Calibration  *calibrated           `json:"calibration,omitempty"`
	Layers       []quantize.Layer      `json:"layers,omitempty"`      // of INT8
	Sensitivity  []quantize.LayerError `json:"sensitivity,omitempty"` // of a search, worst first
	Half         *quantize.HalfReport  `json:"half,omitempty"`        // of FP16
	ModelsJudged int                   `json:"models_judged"`
	Verdict      *quantize.Verdict     `json:"verdict,omitempty"`
	Seconds      float64               `json:"seconds"`

	table []byte // of TensorRT, where it is asked for
}

// calibrated says what the ranges come from.
type calibrated struct {
	Pictures int      `json:"pictures"`
	Skipped  []string `json:"skipped,omitempty"`
	Cache    string   `json:"cache,omitempty"`
	Reused   bool     `json:"reused"`
}

// check finds what is wrong with the command line alone.
func (q *quantization) check() error {
	half := q.to == string(engine.FP16)
	switch {
	case q.output == "":
		return usagef("quantize needs -o OUT.onnx")
	case !half && q.to != string(engine.INT8):
		return usagef("--to %q must be int8 or fp16", q.to)
	case q.images == "" && !half:
		return usagef("quantize needs --images DIR with calibration pictures")
	case q.images == "" && q.data == "" && !q.gate.off():
		return usagef("quantize needs --images DIR or --data DIR for the gate")
	case !slices.Contains(quantize.Methods(), quantize.Method(q.method)):
		return usagef("--method %q must be one of %v", q.method, quantize.Methods())
	case !(q.percentile > 50 && q.percentile <= 100):
		return usagef("--percentile %v must be over 50 and at most 100", q.percentile)
	case q.count < 0:
		return usagef("--count must not be negative")
	case q.batch < 1:
		return usagef("--calibration-batch %d must be at least 1", q.batch)
	case q.table != "" && half:
		return usagef("--calibration-table is for --to int8")
	case q.search && (half || q.gate.off()):
		return usagef("--search is for --to int8 with a gate")
	}
	return q.gate.check()
}

// run converts, judges and writes. A refusal is an error that comes with what was found; nothing is written then.
func (q *quantization) run(ctx context.Context) (*quantized, error) {
	started := time.Now()
	c := config.Default()
	c.Model.Path = q.model
	options, err := modelOptions(c, 1, lowestScore)
	if err != nil {
		return nil, err
	}
	for _, output := range []string{q.output, q.table} {
		if output == "" {
			continue
		}
		if err := checkOutput(output, q.model); err != nil {
			return nil, err
		}
	}
	model, err := standalone(&options)
	if err != nil {
		return nil, err
	}
	calibration, heldOut, dataset, err := q.pictures()
	if err != nil {
		return nil, err
	}
	result := &quantized{Version: 1, Model: options.Path, Precision: engine.Precision(q.to), ModelBytes: len(options.Bytes)}
	var gate *gatekeeper
	if !q.gate.off() {
		gate = newGatekeeper(heldOut, q.gate, q.stderr)
		defer gate.Close()
		if err := gate.refer(ctx, options, dataset); err != nil {
			return nil, err
		}
	}
	var made *onnx.Model
	if result.Precision == engine.FP16 {
		made, err = q.half(ctx, model, calibration, result)
	} else {
		made, err = q.int8(ctx, model, calibration, gate, result)
	}
	if err != nil {
		return nil, err
	}
	data, err := made.Bytes()
	if err != nil {
		return nil, err
	}
	e, err := openOnCPU(q.output, data, 1) // what ONNX Runtime refuses is not written
	if err != nil {
		return nil, err
	}
	if gate != nil && result.Verdict == nil {
		result.ModelsJudged = 1
		result.Verdict, err = gate.judge(ctx, e)
	} else {
		err = e.Close()
	}
	if err != nil {
		return nil, err
	}
	result.OutputBytes, result.Seconds = len(data), time.Since(started).Seconds()
	if result.Verdict != nil {
		result.Verdict.Of(data, result.Precision)
	}
	if result.Verdict != nil && !result.Verdict.Passed {
		return result, q.refusal(result.Verdict)
	}
	if err := made.Save(q.output); err != nil {
		return nil, err
	}
	result.Output = q.output
	if q.table != "" {
		if err := os.WriteFile(q.table, result.table, 0o644); err != nil {
			return nil, fmt.Errorf("calibration table: %w", err)
		}
	}
	return result, saveVerdict(result.Verdict, q.output)
}

func (q *quantization) refusal(v *quantize.Verdict) error {
	remedy := "calibrate on more pictures like the camera's, try --search, another --method, or --to fp16"
	if q.to == string(engine.FP16) {
		remedy = "keep layers in float32 with --exclude, or use the model as it is"
	}
	return fmt.Errorf("%s was not written, the gate refused the %s model: %s (%s)", q.output, strings.ToUpper(q.to), strings.Join(v.Reasons, ", "), remedy)
}

// standalone parses an ONNX model and makes its bytes hold the tensors that it keeps in other files.
func standalone(options *engine.Options) (*onnx.Model, error) {
	model, err := onnx.Parse(options.Path, options.Bytes)
	if err != nil || len(model.ExternalFiles()) == 0 {
		return model, err
	}
	if err := model.Embed(filepath.Dir(options.Path)); err != nil {
		return nil, err
	}
	options.Bytes, err = model.Bytes()
	return model, err
}

// checkOutput finds out before the work whether its result can be written, and that it does not replace the model.
func checkOutput(output, model string) error {
	if info, err := os.Stat(output); err == nil {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory (name the file to write with -o)", output)
		}
		if source, err := os.Stat(model); err == nil && os.SameFile(info, source) {
			return fmt.Errorf("%s would replace the model itself (give -o another name)", output)
		}
	}
	probe, err := os.CreateTemp(filepath.Dir(output), ".probe-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w (name a file in a directory that exists and is writable with -o)", output, errors.Unwrap(err))
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// pictures draws the calibration pictures and those that the gate judges on, which are never the same.
func (q *quantization) pictures() (calibration, heldOut []string, dataset *evaluate.Dataset, err error) {
	if q.data != "" && !q.gate.off() {
		if heldOut, dataset, err = readHeldOut(q.data); err != nil {
			return nil, nil, nil, err
		}
	}
	if q.images == "" {
		return nil, heldOut, dataset, nil
	}
	count := q.count
	if count == 0 {
		all, err := quantize.ChoosePictures(q.images, 0, q.seed)
		if err != nil {
			return nil, nil, nil, err
		}
		if count = len(all); q.data == "" && !q.gate.off() {
			count -= count / 5
		}
		count = min(count, calibrationPictures)
	}
	if calibration, err = quantize.ChoosePictures(q.images, count, q.seed); err != nil || q.gate.off() {
		return calibration, nil, nil, err
	}
	if q.data != "" {
		return calibration, heldOut, dataset, checkOverlap(heldOut, calibration)
	}
	more, err := quantize.ChoosePictures(q.images, count+heldOutPictures, q.seed)
	for _, file := range more {
		if !slices.Contains(calibration, file) {
			heldOut = append(heldOut, file)
		}
	}
	if err == nil && len(heldOut) == 0 {
		err = fmt.Errorf("%s has no pictures left for the gate after %d for calibration (lower --count, or name other pictures with --data)",
			q.images, len(calibration))
	}
	return calibration, heldOut, nil, err
}

// checkOverlap refuses pictures that a model was calibrated on: they say little about its accuracy.
func checkOverlap(heldOut, calibration []string) error {
	both, err := (&quantize.Pictures{Files: heldOut}).Overlap(&quantize.Pictures{Files: calibration})
	if err == nil && both > 0 {
		err = fmt.Errorf("%d of the %d pictures that the gate would judge on are calibration pictures (name others with --data)", both, len(heldOut))
	}
	return err
}

// measure collects the ranges of tensors.
func (q *quantization) measure(ctx context.Context, model *onnx.Model, tensors, files []string, result *quantized) (quantize.Ranges, error) {
	var reader accuracy.Reader
	defer reader.Close()
	bar := report.NewProgress(q.stderr, "calibration runs")
	defer bar.Close()
	collector := quantize.Collector{
		Model: model, Tensors: tensors, Samples: &quantize.Pictures{Files: files, Decode: reader.Read}, Batch: q.batch,
		Open:       func(exposed []byte) (engine.Engine, error) { return openOnCPU(q.model, exposed, q.batch) },
		Percentile: q.percentile, Progress: bar.Update,
	}
	var cache *quantize.Cache
	var err error
	result.Calibration = &calibrated{Cache: q.cache}
	if q.cache == "" {
		cache, err = collector.Run(ctx)
	} else {
		cache, result.Calibration.Reused, err = collector.Cached(ctx, q.cache)
	}
	if err != nil {
		return nil, err
	}
	result.Calibration.Pictures, result.Calibration.Skipped = cache.Count, cache.Skipped
	return cache.Ranges, nil
}

func (q *quantization) open(model []byte) (engine.Engine, error) { return openOnCPU(q.model, model, 1) }

// half converts to FP16. Calibration pictures, where there are some, show which tensors it cannot hold.
func (q *quantization) half(ctx context.Context, model *onnx.Model, files []string, result *quantized) (*onnx.Model, error) {
	options := quantize.HalfOptions{Keep: q.exclude}
	if len(files) > 0 {
		var err error
		if options.Ranges, err = q.measure(ctx, model, quantize.AllTensors(model), files, result); err != nil {
			return nil, err
		}
	}
	made := model.Clone()
	var err error
	result.Half, err = quantize.ToHalf(made, options)
	return made, err
}

// ranges plans what INT8 makes of the prepared model, and measures the ranges for it: of every tensor for a table of TensorRT, whose calibrators
// leave layers in floating point, or fail, where one of their tensors has no range; otherwise only those that get Q/DQ nodes.
func (q *quantization) ranges(
	ctx context.Context, model *onnx.Model, files []string, options quantize.Options, table bool, result *quantized,
) (prepared *onnx.Model, plan *quantize.Plan, ranges quantize.Ranges, err error) {
	if prepared, err = quantize.Prepare(model); err != nil {
		return nil, nil, nil, err
	}
	if plan, err = quantize.NewPlan(prepared, options); err != nil {
		return nil, nil, nil, err
	}
	tensors := plan.Tensors
	if table {
		tensors = quantize.AllTensors(prepared)
	}
	ranges, err = q.measure(ctx, prepared, tensors, files, result)
	return prepared, plan, ranges, err
}

// int8 quantizes. A search has the gate judge what it tries.
func (q *quantization) int8(ctx context.Context, model *onnx.Model, files []string, gate *gatekeeper, result *quantized) (*onnx.Model, error) {
	result.Method = quantize.Method(q.method)
	options := quantize.Options{Method: result.Method, Exclude: q.exclude, StoreInt8: q.compact}
	prepared, plan, ranges, err := q.ranges(ctx, model, files, options, q.table != "", result)
	if err != nil {
		return nil, err
	}
	if q.table != "" {
		if result.table, err = (&quantize.Cache{Ranges: ranges}).TensorRT(tableVersion, result.Method); err != nil {
			return nil, err
		}
	}
	if !q.search {
		result.Layers = plan.Layers
		return plan.Apply(ranges)
	}
	var reader accuracy.Reader
	defer reader.Close()
	bar := report.NewProgress(q.stderr, "layers")
	defer bar.Close()
	search := quantize.Search{
		Model: prepared, Ranges: ranges, Options: options, Open: q.open, Progress: bar.Note,
		Samples: &quantize.Pictures{Files: files[:min(sensitivityPictures, len(files))], Decode: reader.Read},
		Judge: func(ctx context.Context, m *onnx.Model) (*quantize.Verdict, error) {
			data, err := m.Bytes()
			if err != nil {
				return nil, err
			}
			candidate, err := q.open(data)
			if err != nil {
				return nil, err
			}
			return gate.judge(ctx, candidate)
		},
	}
	found, err := search.Run(ctx)
	if err != nil {
		return nil, err
	}
	result.Layers, result.Sensitivity, result.ModelsJudged, result.Verdict = found.Plan.Layers, found.Layers, found.Judged, found.Verdict
	return found.Model, nil
}

// save writes the report.
func (r *quantized) save(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (r *quantized) print(out io.Writer) error {
	text := fmt.Sprintf("%s in %s", r.Model, strings.ToUpper(string(r.Precision)))
	if r.Half != nil {
		text += fmt.Sprintf(": %d nodes in float16, %d in float32", r.Half.Half, len(r.Half.Full))
	} else {
		quantizedLayers := 0
		for i := range r.Layers {
			if r.Layers[i].Quantized() {
				quantizedLayers++
			}
		}
		text += fmt.Sprintf(" by %s: %d of %d layers", r.Method, quantizedLayers, len(r.Layers))
	}
	if r.Calibration != nil {
		text += fmt.Sprintf(", %d calibration pictures", r.Calibration.Pictures)
	}
	text += fmt.Sprintf(", %d bytes from %d, %.1f s\n", r.OutputBytes, r.ModelBytes, r.Seconds)
	for _, layer := range r.Sensitivity {
		if layer.Excluded {
			text += fmt.Sprintf("%s %s stays in floating point: alone it costs %.6f of the head's outputs\n", layer.Operator, layer.Name, layer.Error)
		}
	}
	if r.Verdict != nil {
		text += "gate " + verdictText(r.Verdict) + "\n"
	}
	if r.Output != "" {
		text += "wrote " + r.Output + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
