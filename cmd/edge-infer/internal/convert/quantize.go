// Package convert implements the commands that convert models: build writes a TensorRT engine plan, quantize an INT8 or FP16 ONNX file. The
// accuracy gate checks the results.
package convert

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

const (
	defaultCount      = 500 // calibration images; more hardly change the ranges of a detector
	heldOutImages     = 1000
	sensitivityImages = 4    // layers differ more than images do
	tableVersion      = 8601 // of TensorRT, in the header of a calibration table; build writes the installed version instead
)

// Quantize writes an INT8 or FP16 model that detects as well as the original.
type Quantize struct {
	Model string // ONNX file; empty for the demo model
	ModelOptions
	INT8Options             // Data empty: the gate uses images that were not used for calibration
	Output           string // ONNX file
	Precision        string // int8 or fp16
	Target           string // a quantize.Target; TargetAuto or empty for that of this machine
	CalibrationTable string // file for the ranges as a TensorRT calibration cache; empty for none
	Int8Weights      bool   // weights are stored as INT8

	Logger   *slog.Logger
	Progress progress.Reporter
}

// Flags registers the options on a command line.
func (q *Quantize) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&q.Precision, "precision", string(engine.INT8), "int8 or fp16")
	flags.StringVarP(&q.Output, "output", "o", "", "ONNX file to write")
	flags.StringVar(&q.Target, "target", TargetAuto,
		"runtime of the INT8 model: tensorrt, onnxruntime (on a CPU), or auto: tensorrt if it is installed here")
	q.ModelOptions.flags(flags)
	q.INT8Options.flags(flags)
	flags.StringVar(&q.CalibrationTable, "calibration-table", "",
		"file for the ranges as a TensorRT calibration cache, for its calibrators and trtexec --calib")
	flags.BoolVar(&q.Int8Weights, "int8-weights", false,
		"store weights as INT8, a quarter of the size, as --target onnxruntime always does; TensorRT 8 prefers FP32 with Q/DQ nodes")
}

// Check validates the options.
func (q *Quantize) Check() error {
	if err := q.INT8Options.check(); err != nil {
		return err
	}
	half := q.Precision == string(engine.FP16)
	switch {
	case q.Output == "":
		return config.Usagef("quantize needs -o OUT.onnx")
	case !half && q.Precision != string(engine.INT8):
		return config.Usagef("--precision %q must be int8 or fp16", q.Precision)
	case q.Images == "" && !half && (q.Cache == "" || !q.Limits.Off() && q.Data == "" || q.Search):
		return config.Usagef("quantize needs --images DIR with calibration images")
	case q.Images == "" && q.Data == "" && !q.Limits.Off():
		return config.Usagef("quantize needs --images DIR or --data DIR for the gate")
	case !slices.Contains([]string{"", TargetAuto, string(quantize.TensorRT), string(quantize.ONNXRuntime)}, q.Target):
		return config.Usagef("--target %q must be auto, tensorrt or onnxruntime", q.Target)
	case q.CalibrationTable != "" && (half || q.Target == string(quantize.ONNXRuntime)):
		return config.Usagef("--calibration-table is for --precision int8 and --target tensorrt")
	case q.Search && (half || q.Limits.Off()):
		return config.Usagef("--search is for --precision int8 with a gate")
	}
	if _, err := q.options(); err != nil {
		return err
	}
	return q.Limits.Check()
}

// Run converts the model, runs the gate and writes the result. If the gate refuses the model, it writes nothing and returns the report and
// an error.
func (q *Quantize) Run(ctx context.Context) (*QuantizeReport, error) {
	started := time.Now()
	source, err := read(q.Model, &q.ModelOptions)
	if err != nil {
		return nil, err
	}
	for _, output := range []string{q.Output, q.CalibrationTable} {
		if output == "" {
			continue
		}
		if err := checkOutput(output, q.Model); err != nil {
			return nil, err
		}
	}
	if err := source.parse(); err != nil {
		return nil, err
	}
	calibration, heldOut, dataset, err := q.images()
	if err != nil {
		return nil, err
	}
	media.WarnUnread(q.Logger, true, q.Images, q.Data)
	report := &QuantizeReport{Version: 1, Model: source.Path, Precision: engine.Precision(q.Precision), ModelBytes: len(source.Bytes)}
	var gate *accuracy.Gate
	if !q.Limits.Off() {
		gate, err = q.openGate(ctx, source, q.Layout, heldOut, dataset, q.Progress)
		if err != nil {
			return nil, err
		}
		defer gate.Close()
	}
	c := q.conversion(source.Path, q.Progress)
	c.int8Weights = q.Int8Weights
	c.target = q.target()
	var made *onnx.Model
	if report.Precision == engine.FP16 {
		made, report.Half, report.Calibration, err = c.half(ctx, source.model, calibration)
	} else {
		report.Target = c.target
		made, err = q.int8(ctx, c, source.model, calibration, gate, report)
	}
	if err != nil {
		return nil, err
	}
	data, err := q.judge(ctx, made, gate, report)
	if err != nil {
		return nil, err
	}
	if report.Target == quantize.ONNXRuntime {
		original, err := source.model.Bytes()
		if err == nil {
			report.Speed, err = c.compareSpeed(ctx, original, data)
		}
		if err != nil {
			return nil, err
		}
	}
	report.OutputBytes, report.Seconds = len(data), time.Since(started).Seconds()
	if report.Verdict != nil && !report.Verdict.Passed {
		return report, report.refusal(q)
	}
	return report, q.write(made, report)
}

// judge checks that ONNX Runtime accepts the model, runs the gate unless a search has done so, and returns the model's bytes.
func (q *Quantize) judge(ctx context.Context, made *onnx.Model, gate *accuracy.Gate, report *QuantizeReport) ([]byte, error) {
	data, err := made.Bytes()
	if err != nil {
		return nil, err
	}
	e, err := accuracy.OnCPU(q.Output, data, 1) // a model that ONNX Runtime rejects is not written
	if err != nil {
		return nil, err
	}
	if gate != nil && report.Verdict == nil {
		report.ModelsJudged = 1
		report.Verdict, err = gate.Judge(ctx, e)
	} else {
		err = e.Close()
	}
	if err != nil {
		return nil, err
	}
	if report.Verdict != nil {
		report.Verdict.SetModel(data, report.Precision)
	}
	return data, nil
}

// write writes the model, the calibration table and the verdict.
func (q *Quantize) write(made *onnx.Model, report *QuantizeReport) error {
	if err := made.Save(q.Output); err != nil {
		return err
	}
	report.Output = q.Output
	if q.CalibrationTable != "" {
		if err := atomicfile.Write(q.CalibrationTable, report.table, 0o644); err != nil {
			return fmt.Errorf("calibration table: %w", err)
		}
	}
	return accuracy.SaveVerdict(report.Verdict, q.Output)
}

// images selects the calibration images and the gate's images; the two sets must not overlap.
func (q *Quantize) images() (calibration, heldOut []string, dataset *evaluate.Dataset, err error) {
	if q.Data != "" && !q.Limits.Off() {
		heldOut, dataset, err = accuracy.ReadHeldOut(q.Data, q.Logger)
		if err != nil {
			return nil, nil, nil, err
		}
	}
	if q.Images == "" {
		return nil, heldOut, dataset, nil
	}
	count := q.Count
	if count == 0 {
		all, err := quantize.ChooseImages(q.Images, 0, q.Seed)
		if err != nil {
			return nil, nil, nil, err
		}
		count = len(all)
		if q.Data == "" && !q.Limits.Off() {
			count -= count / 5 // held out for the gate
		}
		count = min(count, defaultCount)
	}
	calibration, err = quantize.ChooseImages(q.Images, count, q.Seed)
	if err != nil || q.Limits.Off() {
		return calibration, nil, nil, err
	}
	if q.Data != "" {
		return calibration, heldOut, dataset, checkOverlap(heldOut, calibration)
	}
	more, err := quantize.ChooseImages(q.Images, count+heldOutImages, q.Seed)
	for _, file := range more {
		if !slices.Contains(calibration, file) {
			heldOut = append(heldOut, file)
		}
	}
	if err == nil && len(heldOut) == 0 {
		err = fmt.Errorf("%s has no images left for the gate after %d for calibration (lower --count, or name other images with --data)",
			q.Images, len(calibration))
	}
	return calibration, heldOut, nil, err
}

// int8 quantizes the model. With Search, the gate decides which layers are excluded.
func (q *Quantize) int8(
	ctx context.Context, c *conversion, model *onnx.Model, files []string, gate *accuracy.Gate, report *QuantizeReport,
) (*onnx.Model, error) {
	known, err := c.calibrate(ctx, model, files, q.CalibrationTable != "")
	if err != nil {
		return nil, err
	}
	report.Method, report.Calibration, report.Sensitivity = c.method, known.calibration, known.sensitivity
	if q.CalibrationTable != "" {
		report.table, err = (&quantize.Cache{Ranges: known.ranges}).FormatTensorRT(tableVersion, c.method)
		if err != nil {
			return nil, err
		}
	}
	if !q.Search {
		report.Layers = known.plan.Layers
		return known.plan.Apply(known.ranges)
	}
	return q.search(ctx, c, known, files, gate, report)
}

// search excludes the most sensitive layers until the gate passes.
func (q *Quantize) search(
	ctx context.Context, c *conversion, known *ranges, files []string, gate *accuracy.Gate, report *QuantizeReport,
) (*onnx.Model, error) {
	var reader media.Reader
	defer reader.Close()
	step := q.Progress.Begin("layers")
	defer step.Close()
	search := quantize.Search{
		Model: known.prepared, Ranges: known.ranges, Options: c.options(), Open: c.open(1), Progress: step.Note,
		Samples: &quantize.Images{Files: files[:min(sensitivityImages, len(files))], Decode: reader.Read},
		Judge: func(ctx context.Context, m *onnx.Model) (*quantize.Verdict, error) {
			data, err := m.Bytes()
			if err != nil {
				return nil, err
			}
			candidate, err := accuracy.OnCPU(c.name, data, 1)
			if err != nil {
				return nil, err
			}
			return gate.Judge(ctx, candidate)
		},
	}
	found, err := search.Run(ctx)
	if err != nil {
		return nil, err
	}
	report.Layers, report.ModelsJudged, report.Verdict = found.Plan.Layers, found.Judged, found.Verdict
	report.Sensitivity = append(slices.DeleteFunc(known.sensitivity, func(l quantize.LayerError) bool { return !l.Excluded }), found.Layers...)
	return found.Model, nil
}
