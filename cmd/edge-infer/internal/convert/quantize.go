// Package convert is the jobs that make another model of a model: build writes an engine plan of TensorRT, quantize an ONNX file in INT8 or
// FP16. The gate judges what they make.
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
	"github.com/edge-infer/edge-infer/engine/atomicfile"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

const (
	calibrationImages = 500 // more change the ranges of a detector little
	heldOutImages     = 1000
	sensitivityImages = 4    // layers differ more than images do
	tableVersion      = 8601 // of TensorRT in the head of a calibration table; build writes that of the release it finds instead
)

// Quantize writes an INT8 or FP16 model that detects as well as the original.
type Quantize struct {
	Model            string // ONNX file; empty for the demo model
	ModelOptions            // of the model
	Images           string // directory of calibration images
	Output           string // ONNX file
	Precision        string // int8 or fp16
	Method           string // how INT8 ranges are chosen
	Percentile       float64
	Count            int    // calibration images; 0 for as many as are worth it
	Seed             uint64 // which images are drawn
	CalibrationBatch int    // calibration images that run at once
	Cache            string // file that keeps the measured ranges; empty for none
	CalibrationTable string // file for the ranges as TensorRT's own calibration table; empty for none
	Exclude          []string
	LayerLoss        float64 // of the head's outputs, from which on a layer stays in floating point
	Int8Weights      bool    // INT8 weights are stored as such
	Search           bool    // layers are left in floating point until the gate passes
	Data             string  // directory that the gate judges on; empty for the images of Images that are not calibrated on
	Limits           accuracy.Limits

	Logger   *slog.Logger
	Progress progress.Reporter
}

// layerLossHelp explains the flag of conversions to INT8.
const layerLossHelp = "share of the head's outputs that a layer alone may lose in INT8; one that loses more stays in floating point; " +
	"0 for none"

// Flags are the job's place on a command line.
func (q *Quantize) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&q.Images, "images", "", "directory of calibration images, subdirectories included")
	q.ModelOptions.flags(flags)
	flags.StringVarP(&q.Output, "output", "o", "", "ONNX file to write")
	flags.StringVar(&q.Precision, "to", string(engine.INT8), "int8 or fp16")
	flags.StringVar(&q.Method, "method", string(quantize.DefaultMethod), "how INT8 ranges are chosen: minmax, percentile, entropy or mse")
	flags.Float64Var(&q.Percentile, "percentile", quantize.DefaultPercentile, "share of the values that --method percentile keeps, in percent")
	flags.IntVar(&q.Count, "count", 0,
		fmt.Sprintf("number of calibration images, drawn with --seed; 0 for up to %d, a fifth held out without --data", calibrationImages))
	flags.Uint64Var(&q.Seed, "seed", 1, "which images are drawn")
	flags.IntVar(&q.CalibrationBatch, "calibration-batch", 1, "calibration images that run at once, for a model that leaves its batch open")
	flags.StringVar(&q.Cache, "calibration-cache", "", "file that keeps the measured ranges; a table of TensorRT is read too")
	flags.StringVar(&q.CalibrationTable, "calibration-table", "",
		"file for the ranges as TensorRT's own calibration table, which its calibrators and trtexec --calib read")
	flags.StringSliceVar(&q.Exclude, "exclude", nil, "layers that stay in floating point: names, patterns with * and ?, or operators")
	flags.Float64Var(&q.LayerLoss, "layer-loss", quantize.DefaultLayerLoss, layerLossHelp)
	flags.BoolVar(&q.Int8Weights, "compact", false, "store INT8 weights as such, a quarter of the size; TensorRT 8 prefers the other form")
	flags.BoolVar(&q.Search, "search", false, "leave the layers in floating point that cost the most until the gate passes")
	flags.StringVar(&q.Data, "data", "", "directory of images that the gate judges on, with labels if possible")
	q.Limits.Flags(flags, quantize.DefaultMatchRate)
}

// Check finds what is wrong with the inputs alone.
func (q *Quantize) Check() error {
	half := q.Precision == string(engine.FP16)
	switch {
	case q.Output == "":
		return config.Usagef("quantize needs -o OUT.onnx")
	case !half && q.Precision != string(engine.INT8):
		return config.Usagef("--to %q must be int8 or fp16", q.Precision)
	case q.Images == "" && !half && (q.Cache == "" || !q.Limits.Off() && q.Data == "" || q.Search):
		return config.Usagef("quantize needs --images DIR with calibration images")
	case q.Images == "" && q.Data == "" && !q.Limits.Off():
		return config.Usagef("quantize needs --images DIR or --data DIR for the gate")
	case !slices.Contains(quantize.Methods(), quantize.Method(q.Method)):
		return config.Usagef("--method %q must be one of %v", q.Method, quantize.Methods())
	case !(q.Percentile > 50 && q.Percentile <= 100):
		return config.Usagef("--percentile %v must be over 50 and at most 100", q.Percentile)
	case q.Count < 0:
		return config.Usagef("--count must not be negative")
	case !(q.LayerLoss >= 0):
		return config.Usagef("--layer-loss %v must not be negative", q.LayerLoss)
	case q.CalibrationBatch < 1:
		return config.Usagef("--calibration-batch %d must be at least 1", q.CalibrationBatch)
	case q.CalibrationTable != "" && half:
		return config.Usagef("--calibration-table is for --to int8")
	case q.Search && (half || q.Limits.Off()):
		return config.Usagef("--search is for --to int8 with a gate")
	}
	if _, err := q.options(); err != nil {
		return err
	}
	return q.Limits.Check()
}

// Run converts, judges and writes. A refusal is an error that comes with what was found; nothing is written then.
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
	report := &QuantizeReport{Version: 1, Model: source.Path, Precision: engine.Precision(q.Precision), ModelBytes: len(source.Bytes)}
	var gate *accuracy.Gate
	if !q.Limits.Off() {
		gate = accuracy.NewGate(heldOut, q.Limits, q.Progress)
		gate.Layout = head.Layout(q.Layout)
		defer gate.Close()
		if err := gate.Refer(ctx, source.Options, dataset); err != nil {
			return nil, err
		}
	}
	c := &conversion{
		name: source.Path, method: quantize.Method(q.Method), percentile: q.Percentile, cache: q.Cache, exclude: q.Exclude, compact: q.Int8Weights,
		layerLoss: q.LayerLoss, batch: q.CalibrationBatch, progress: q.Progress,
	}
	var made *onnx.Model
	if report.Precision == engine.FP16 {
		made, report.Half, report.Calibration, err = c.half(ctx, source.model, calibration)
	} else {
		made, err = q.int8(ctx, c, source.model, calibration, gate, report)
	}
	if err != nil {
		return nil, err
	}
	data, err := q.judge(ctx, made, gate, report)
	if err != nil {
		return nil, err
	}
	report.OutputBytes, report.Seconds = len(data), time.Since(started).Seconds()
	if report.Verdict != nil && !report.Verdict.Passed {
		return report, report.refusal(q)
	}
	return report, q.write(made, report)
}

// judge has ONNX Runtime, and the gate where it has not yet, look at what was made. It gives the bytes.
func (q *Quantize) judge(ctx context.Context, made *onnx.Model, gate *accuracy.Gate, report *QuantizeReport) ([]byte, error) {
	data, err := made.Bytes()
	if err != nil {
		return nil, err
	}
	e, err := accuracy.OnCPU(q.Output, data, 1) // what ONNX Runtime refuses is not written
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

// write keeps what was made, and what was found of it.
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

// images draws the calibration images and those that the gate judges on, which are never the same.
func (q *Quantize) images() (calibration, heldOut []string, dataset *evaluate.Dataset, err error) {
	if q.Data != "" && !q.Limits.Off() {
		if heldOut, dataset, err = accuracy.ReadHeldOut(q.Data); err != nil {
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
		if count = len(all); q.Data == "" && !q.Limits.Off() {
			count -= count / 5
		}
		count = min(count, calibrationImages)
	}
	if calibration, err = quantize.ChooseImages(q.Images, count, q.Seed); err != nil || q.Limits.Off() {
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

// int8 quantizes. A search has the gate judge what it tries.
func (q *Quantize) int8(
	ctx context.Context, c *conversion, model *onnx.Model, files []string, gate *accuracy.Gate, report *QuantizeReport,
) (*onnx.Model, error) {
	known, err := c.calibrate(ctx, model, files, q.CalibrationTable != "")
	if err != nil {
		return nil, err
	}
	report.Method, report.Calibration, report.Sensitivity = c.method, known.calibration, known.sensitivity
	if q.CalibrationTable != "" {
		if report.table, err = (&quantize.Cache{Ranges: known.ranges}).FormatTensorRT(tableVersion, c.method); err != nil {
			return nil, err
		}
	}
	if !q.Search {
		report.Layers = known.plan.Layers
		return known.plan.Apply(known.ranges)
	}
	return q.search(ctx, c, known, files, gate, report)
}

// search leaves out the layers that cost the most until the gate passes.
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
