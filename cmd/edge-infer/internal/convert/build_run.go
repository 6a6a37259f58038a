package convert

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

// judged reports whether the accuracy gate is on.
func (b *Build) judged() bool { return b.Data != "" && !b.Limits.Off() }

// Run builds plans, runs the gate on them and keeps the first that passes. If none passes, it returns the report and an error.
func (b *Build) Run(ctx context.Context) (*BuildReport, error) {
	started := time.Now()
	reference, err := b.open()
	if err != nil {
		return nil, err
	}
	dir, err := b.dir()
	if err != nil {
		return nil, err
	}
	if err := b.findMachine(); err != nil {
		return nil, err
	}
	if err := b.fitVersion(); err != nil {
		return nil, err
	}
	heldOut, dataset, err := b.images()
	if err != nil {
		return nil, err
	}
	media.WarnUnread(b.Logger, true, b.Images, b.Data)
	var gate *accuracy.Gate
	if b.judged() {
		gate, err = b.openGate(ctx, reference, b.Layout, heldOut, dataset, b.Progress)
		if err != nil {
			return nil, err
		}
		defer gate.Close()
	}
	report := &BuildReport{Version: 1, Model: b.source.Path}
	for _, precision := range b.candidates() {
		done, err := b.try(ctx, precision, dir, gate, report)
		if err != nil {
			return nil, err
		}
		if done {
			report.Seconds = time.Since(started).Seconds()
			return report, nil
		}
	}
	report.Seconds = time.Since(started).Seconds()
	return report, report.refusal()
}

// open reads the model and the gate's reference.
func (b *Build) open() (reference *source, err error) {
	b.source, err = read(b.Model, &b.ModelOptions)
	if err != nil {
		return nil, err
	}
	b.buildOptions.Model = b.source.Bytes // before parse, as run would build it
	b.buildOptions.Path = b.source.Path
	b.buildOptions.Metadata = b.source.Metadata
	b.buildOptions.Width = b.source.Width
	b.buildOptions.Height = b.source.Height
	if err := b.source.parse(); err != nil {
		return nil, err
	}
	reference = b.source
	if b.ReferenceModel != "" {
		reference, err = read(b.ReferenceModel, &b.ModelOptions)
		if err != nil {
			return nil, err
		}
		if err := reference.parse(); err != nil {
			return nil, err
		}
	}
	return reference, b.checkShapes()
}

// fitVersion checks the options against the installed TensorRT version.
func (b *Build) fitVersion() error {
	if b.Search && b.typedOnly() {
		return fmt.Errorf("--search is for TensorRT's calibrators, which %s does not have (edge-infer quantize --search makes a model for it)",
			b.version)
	}
	const parsed = 17 // the newest opset that the parsers of TensorRT 8 support
	if opset := b.source.model.Opset(); b.version.Major < 10 && opset > parsed {
		b.Logger.Warn("the model is newer than this TensorRT; if it is rejected, export it with opset=17",
			"opset", opset, "tensorrt", b.version.String())
	}
	return nil
}

// checkShapes rejects shapes that the model does not accept, because TensorRT would ignore them.
func (b *Build) checkShapes() error {
	inputs, err := b.source.model.Inputs()
	if err != nil {
		return err
	}
	open := false
	var names []string
	for i := range inputs {
		names = append(names, inputs[i].Name)
		open = open || len(inputs[i].Shape) > 0 && inputs[i].Shape[0] < 0
	}
	for i := range b.buildOptions.Shapes {
		if name := b.buildOptions.Shapes[i].Name; !slices.Contains(names, name) {
			return fmt.Errorf("--shape %s: the model has no such input (it has %s)", name, strings.Join(names, ", "))
		}
	}
	if b.buildOptions.Batch.Max > 1 && !open {
		return fmt.Errorf("--batch %s: the model fixes its batch (omit --batch, or export the model with a dynamic batch)", b.Batch)
	}
	return nil
}

// dir returns the directory of the plan.
func (b *Build) dir() (string, error) {
	if b.Output != "" {
		return filepath.Dir(b.Output), checkOutput(b.Output, b.Model)
	}
	dir, err := tensorrt.CacheDir()
	if err != nil {
		return "", fmt.Errorf("%w (give -o FILE)", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("plan cache: %w (give -o FILE, or set XDG_CACHE_HOME to a writable directory)", err)
	}
	return dir, atomicfile.Check(filepath.Join(dir, "plan"))
}

// findMachine opens the GPU and TensorRT first, because everything else would be in vain without them.
func (b *Build) findMachine() error {
	device, err := cuda.Open(b.GPU)
	if err != nil {
		return err
	}
	defer device.Close()
	library, err := tensorrt.OpenLibrary(b.buildOptions.Library)
	if err != nil {
		return err
	}
	if _, err := library.LoadPlugins(b.Plugins, b.Logger); err != nil {
		return err
	}
	b.version = library.Version
	if b.buildOptions.TimingCache == "" {
		b.buildOptions.TimingCache, err = tensorrt.Cache{}.TimingFile(library.Version, device.Facts())
	}
	return err
}

// images selects the calibration images and lists the gate's images; the two sets must not overlap.
func (b *Build) images() (heldOut []string, dataset *evaluate.Dataset, err error) {
	if b.judged() {
		heldOut, dataset, err = accuracy.ReadHeldOut(b.Data, b.Logger)
		if err != nil {
			return nil, nil, err
		}
	}
	if b.Images == "" {
		return heldOut, dataset, nil
	}
	b.files, err = quantize.ChooseImages(b.Images, cmp.Or(b.Count, defaultCount), b.Seed)
	if err != nil {
		return nil, nil, err
	}
	return heldOut, dataset, checkOverlap(heldOut, b.files)
}

// quantizedAlready reports whether the model has Q/DQ nodes.
func (b *Build) quantizedAlready() bool {
	return b.source.model.Operators()["QuantizeLinear"]+b.source.model.Operators()["DequantizeLinear"] > 0
}

// typedOnly reports whether the model alone specifies the precision.
func (b *Build) typedOnly() bool { return b.StronglyTyped || b.version.Major >= 11 }

// candidates returns the precisions to try, best first. Auto leaves the choice to TensorRT.
func (b *Build) candidates() []engine.Precision {
	precision := engine.Precision(b.Precision)
	switch {
	case precision == engine.Auto && (b.quantizedAlready() || b.Limits.Off() && (b.Images != "" || b.Cache != "")):
		return []engine.Precision{engine.INT8}
	case precision != engine.Auto || !b.judged():
		return []engine.Precision{precision}
	case b.Images != "" || b.Cache != "":
		return []engine.Precision{engine.INT8, engine.FP16, engine.FP32}
	}
	return []engine.Precision{engine.FP16, engine.FP32}
}

// try builds one precision in a temporary directory next to the plan's final place and moves it there if it passes the gate.
func (b *Build) try(ctx context.Context, precision engine.Precision, dir string, gate *accuracy.Gate, report *BuildReport) (bool,
	error,
) {
	stage, err := os.MkdirTemp(dir, ".building-*")
	if err != nil {
		return false, fmt.Errorf("build: %w", err)
	}
	defer os.RemoveAll(stage)
	o := b.buildOptions
	o.Precision = precision
	if b.typedOnly() {
		o.Precision = engine.Auto
	}
	switch {
	case precision == engine.INT8 && !b.quantizedAlready():
		err = b.int8(ctx, &o, stage)
	case precision == engine.FP16 && b.typedOnly():
		err = b.rewrite(ctx, &o, engine.FP16, nil)
	}
	if err != nil {
		return false, err
	}
	made, err := b.attempt(ctx, o, stage, gate)
	if err == nil && made.refused() && precision == engine.INT8 && b.Search {
		made, err = b.search(ctx, made, stage, gate, report)
	}
	if err != nil {
		return false, err
	}
	if made.refused() {
		b.Logger.Warn("the gate refused the plan", "precision", precision, "reasons", strings.Join(made.verdict.Reasons, ", "))
		report.Refused = append(report.Refused, RefusedPlan{precision, made.verdict})
		return false, nil
	}
	return true, b.keep(made, precision, dir, report)
}

// keep moves a plan to its final place and completes the report.
func (b *Build) keep(made *attempt, precision engine.Precision, dir string, report *BuildReport) error {
	output, plan, verdict := b.Output, made.plan, made.verdict
	if output == "" {
		output = filepath.Join(dir, filepath.Base(plan.Path))
	}
	if verdict != nil {
		for _, before := range report.Refused {
			verdict.Refused = append(verdict.Refused, quantize.Refusal{Precision: before.Precision, Reasons: before.Verdict.Reasons})
		}
	}
	if err := atomicfile.Move(plan.Path, output); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	report.Plan = output
	report.Precision = precision
	report.Facts = &plan.Facts
	report.Bytes = plan.Bytes
	report.Verdict = verdict
	report.Network = made.network
	if precision == engine.Auto {
		report.Precision = plan.Facts.Precision
	}
	report.Unquantized = made.options.Calibration.Unquantized
	return accuracy.SaveVerdict(verdict, output)
}

// int8 provides the ranges for a model without Q/DQ nodes.
func (b *Build) int8(ctx context.Context, o *tensorrt.BuildOptions, stage string) error {
	switch {
	case !b.QDQ && !b.typedOnly() && (b.Images != "" || b.Cache != ""):
		c := b.conversion(o.Path, b.Progress)
		c.measureAll = b.Search
		plan, err := quantize.NewPlan(b.source.model, quantize.Options{Exclude: b.Exclude})
		if err != nil {
			return err
		}
		t := &calibrator{
			files: b.files, cache: b.Cache, method: quantize.Method(b.Method), unquantized: plan.Unquantized(), dir: stage,
			measure: func(ctx context.Context) (quantize.Ranges, []string, error) {
				known, err := c.calibrate(ctx, b.source.model, b.files, true)
				if err != nil {
					return nil, nil, err
				}
				b.calibrated = known
				plan, err = quantize.NewPlan(b.source.model, known.options) // named as TensorRT sees the layers
				if err != nil {
					return nil, nil, err
				}
				return known.ranges, plan.Unquantized(), nil
			},
		}
		return t.prepare(ctx, b.source.model, o, b.version)
	case len(b.files) == 0:
		return errNoImages
	}
	why := "--qdq"
	if b.typedOnly() {
		why = "TensorRT " + b.version.String() + " without calibrators"
	}
	b.Logger.Info("inserting Q/DQ nodes into the model", "reason", why)
	return b.rewrite(ctx, o, engine.INT8, b.files)
}

// rewrite converts the model itself to a precision.
func (b *Build) rewrite(ctx context.Context, o *tensorrt.BuildOptions, to engine.Precision, files []string) error {
	c := b.conversion(o.Path, b.Progress)
	c.measureAll = b.Search
	var made *onnx.Model
	var err error
	if to == engine.INT8 {
		var known *ranges
		known, err = c.calibrate(ctx, b.source.model, files, false)
		if err == nil {
			made, err = known.plan.Apply(known.ranges)
		}
	} else {
		made, _, _, err = c.half(ctx, b.source.model, files)
	}
	if err != nil {
		return err
	}
	o.Model, err = made.Bytes()
	return err
}

// judge opens a plan and runs the gate on it.
func (b *Build) judge(ctx context.Context, gate *accuracy.Gate, path string) (*quantize.Verdict, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	candidate, err := tensorrt.Options{
		Options:       engine.Options{Path: path, Bytes: file, Device: b.GPU, Library: b.Library, Plugins: b.Plugins, Slots: 1},
		AllowHostCode: b.VersionCompatible, Log: b.Logger,
	}.Open()
	if err != nil {
		return nil, err
	}
	verdict, err := gate.Judge(ctx, candidate)
	if err == nil {
		verdict.SetModel(file, candidate.Model().Precision)
	}
	return verdict, err
}
