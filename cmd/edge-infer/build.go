package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

func newBuild(stdout, stderr io.Writer) *cobra.Command {
	b := &planning{stderr: stderr}
	var asJSON bool
	command := &cobra.Command{
		Use: "build [MODEL.onnx]", Short: "Build a TensorRT engine plan and prove its accuracy", Args: atMostOneModel,
		Long: `Builds the plan of a model, or of the demo model, for this machine's GPU and TensorRT release, in a process of its own. With --data the gate
compares it with the model in FP32 on ONNX Runtime, and a plan that does not match is not kept; --precision auto then goes from INT8, where
there is a --calibration, over FP16 to FP32 and keeps the first that passes. The verdict goes to PLAN` + verdictSuffix + `.

Without -o the plan goes into the cache, where run --engine tensorrt finds a plan of default options by itself; any other is run with --model PLAN.

  edge-infer build yolo11n.onnx --precision fp16
  edge-infer build yolo11n.onnx --calibration pictures/ --data labelled/ -o yolo11n.plan`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				b.model = args[0]
			}
			if err := b.check(command); err != nil {
				return err
			}
			result, err := b.run(command.Context())
			if result == nil {
				return err
			}
			if asJSON {
				return errors.Join(err, json.NewEncoder(stdout).Encode(result))
			}
			return errors.Join(err, result.print(stdout))
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&b.precision, "precision", string(engine.Auto), "auto, fp32, fp16 or int8")
	flags.StringVarP(&b.output, "output", "o", "", "plan file to write, instead of the cache")
	flags.StringVar(&b.batch, "batch", "1", "pictures in a batch, MIN,OPT,MAX or the most, for a model that leaves it open")
	flags.StringArrayVar(&b.shapes, "shape", nil, "NAME=MIN,OPT,MAX of an input, like images=1x3x640x640,4x3x640x640,8x3x640x640; may be given several times")
	flags.StringVar(&b.workspace, "workspace", "", "most scratch memory of a layer, like 1GiB")
	flags.StringVar(&b.labels, "labels", "", "file with one class name per line, instead of the model's own")
	flags.StringVar(&b.calibration, "calibration", "", "directory of pictures that INT8 is calibrated on")
	flags.IntVar(&b.count, "calibration-count", 200, "number of calibration pictures, drawn with --seed; 0 for all")
	flags.Uint64Var(&b.seed, "seed", 1, "which pictures are drawn")
	flags.IntVar(&b.calibrationBatch, "calibration-batch", 0, "calibration pictures that run at once, for a model that leaves its batch open; 0 for one, in TensorRT's own calibrators for what the plan is tuned for")
	flags.StringVar(&b.cache, "calibration-cache", "", "file that keeps the measured ranges, as that of quantize; a table of TensorRT of any release is read too")
	flags.StringVar(&b.method, "calibration-method", string(quantize.DefaultMethod),
		"how INT8 ranges are chosen: minmax, percentile, entropy or mse of what ONNX Runtime measures; "+ownEntropy+" or "+ownMinMax+
			" leave the choice to TensorRT's own calibrators, which lose more accuracy")
	flags.BoolVar(&b.qdq, "qdq", false, "put Q/DQ nodes into the model for INT8 also where TensorRT has calibrators")
	flags.StringSliceVar(&b.exclude, "exclude", nil, "layers that INT8 leaves in floating point beside a detector's last ones: names, patterns with * and ?, or operators")
	flags.IntVar(&b.level, "opt-level", -1, "effort of the builder, 0 to 5; -1 for the release's own")
	flags.IntVar(&b.dla, "dla", -1, "build for this DLA core, with the GPU as fallback; -1 for the GPU alone")
	flags.IntVar(&b.device, "device", 0, "number of the GPU")
	flags.StringVar(&b.library, "library", "", "TensorRT library or its folder, instead of searching")
	flags.StringVar(&b.timings, "timing-cache", "", "file of kernel timings that makes later builds faster, instead of one in the cache")
	flags.BoolVar(&b.versionCompatible, "version-compatible", false, "make a plan that newer releases of TensorRT run too")
	flags.BoolVar(&b.hardwareCompatible, "hardware-compatible", false, "make a plan that Ampere and all newer GPUs run")
	flags.BoolVar(&b.typed, "strongly-typed", false, "take every type from the model, as TensorRT 11 always does")
	flags.StringVar(&b.data, "data", "", "directory of pictures that the gate judges on, with labels if possible")
	b.gate.flags(flags, quantize.DefaultMatchRate)
	flags.StringVar(&b.reference, "reference-model", "", "ONNX file in FP32 that the gate compares with, demo for the embedded one, instead of the model itself")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	flags.SetNormalizeFunc(synonyms(map[string]string{"count": "calibration-count", "method": "calibration-method"}))
	return command
}

// synonyms lets build and quantize take each other's names of the same flag.
func synonyms(names map[string]string) func(*pflag.FlagSet, string) pflag.NormalizedName {
	return func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if known, ok := names[name]; ok {
			name = known
		}
		return pflag.NormalizedName(name)
	}
}

// planning makes one plan.
type planning struct {
	model, labels, precision, output, batch, workspace, library, timings string
	shapes, exclude                                                      []string
	calibration, cache, method, data, reference                          string
	count, calibrationBatch, level, dla, device                          int
	seed                                                                 uint64
	versionCompatible, hardwareCompatible, typed, qdq                    bool
	gate                                                                 gateLimits
	stderr                                                               io.Writer

	// set by check
	asked  tensorrt.BuildOptions // what the flags say, without the model
	logger *slog.Logger

	// set by run
	version tensorrt.Version
	source  *onnx.Model
	files   []string // calibration pictures
}

// built is what build prints.
type built struct {
	Version   int                 `json:"v"`
	Model     string              `json:"model"`
	Plan      string              `json:"plan,omitempty"` // empty when the gate refused
	Precision engine.Precision    `json:"precision,omitempty"`
	Facts     *tensorrt.PlanFacts `json:"facts,omitempty"`
	Bytes     int64               `json:"bytes,omitempty"`
	// Unquantized are the results of the layers that a calibrated plan keeps in FP16.
	Unquantized []string          `json:"unquantized,omitempty"`
	Verdict     *quantize.Verdict `json:"verdict,omitempty"`
	Refused     []refusedPlan     `json:"refused,omitempty"` // in the order they were tried
	Seconds     float64           `json:"seconds"`
}

// refusedPlan is a precision that did not pass the gate.
type refusedPlan struct {
	Precision engine.Precision  `json:"precision"`
	Verdict   *quantize.Verdict `json:"verdict"`
}

// check finds what is wrong with the command line alone, and reads it.
func (b *planning) check(command *cobra.Command) (err error) {
	b.logger = newLogger(b.stderr, config.Default().Log)
	o := &b.asked
	o.Device, o.Library.Path, o.TimingCache, o.StronglyTyped = b.device, b.library, b.timings, b.typed
	o.VersionCompatible, o.HardwareCompatible, o.Log = b.versionCompatible, b.hardwareCompatible, b.logger
	if o.Batch, err = parseBatch(b.batch); err != nil {
		return err
	}
	for _, text := range b.shapes {
		shape, err := parseShape(text)
		if err != nil {
			return err
		}
		o.Shapes = append(o.Shapes, shape)
	}
	if b.workspace != "" {
		if o.Workspace, err = parseBytes(b.workspace); err != nil {
			return err
		}
	}
	if b.level >= 0 {
		o.Level = &b.level
	}
	if b.dla >= 0 {
		o.DLA = &b.dla
	}
	precision := engine.Precision(b.precision)
	calibrates := b.calibration != "" || b.cache != ""
	switch {
	case !slices.Contains([]engine.Precision{engine.Auto, engine.FP32, engine.FP16, engine.INT8}, precision):
		return usagef("--precision %q must be auto, fp32, fp16 or int8", b.precision)
	case !slices.Contains(quantize.Methods(), quantize.Method(b.method)) && !byTensorRT(b.method):
		return usagef("--calibration-method %q must be one of %v, %s or %s", b.method, quantize.Methods(), ownEntropy, ownMinMax)
	case byTensorRT(b.method) && (b.qdq || b.typed):
		return usagef("--calibration-method %s is for TensorRT's calibrators, not for Q/DQ nodes (choose one of %v)", b.method, quantize.Methods())
	case b.count < 0:
		return usagef("--calibration-count must not be negative")
	case b.calibrationBatch < 0:
		return usagef("--calibration-batch must not be negative")
	case b.level > 5:
		return usagef("--opt-level %d must be 0 to 5", b.level)
	case b.device < 0:
		return usagef("--device must not be negative")
	case calibrates && (precision == engine.FP32 || precision == engine.FP16):
		return usagef("--calibration is for --precision int8 or auto")
	case calibrates && precision == engine.Auto && b.data == "":
		return usagef("--precision auto takes INT8 only if the gate lets it pass: give --data DIR, or --precision int8")
	case b.data == "" && (command.Flags().Changed("gate") || command.Flags().Changed("max-loss") || b.reference != ""):
		return usagef("the gate needs --data DIR with pictures")
	case b.data != "" && o.Batch.Min > 1:
		return usagef("the gate runs one picture at a time: --batch must begin at 1")
	}
	return b.gate.check()
}

// judged reports whether there is a gate.
func (b *planning) judged() bool { return b.data != "" && !b.gate.off() }

// run builds, judges and keeps. A refusal is an error that comes with what was found.
func (b *planning) run(ctx context.Context) (*built, error) {
	started := time.Now()
	c := config.Default()
	c.Model.Path, c.Model.Labels = b.model, b.labels
	options, err := modelOptions(c, 1, lowestScore)
	if err != nil {
		return nil, err
	}
	if tensorrt.IsPlan(options.Bytes) {
		return nil, fmt.Errorf("model %s is an engine plan already (name the ONNX file that it came from)", options.Path)
	}
	b.asked.Model, b.asked.Path, b.asked.Metadata = options.Bytes, options.Path, options.Metadata
	reference := options
	if b.source, err = standalone(&reference); err != nil {
		return nil, err
	}
	if b.reference != "" {
		if c.Model.Path = b.reference; b.reference == demoName {
			c.Model.Path = ""
		}
		if reference, err = modelOptions(c, 1, lowestScore); err != nil {
			return nil, err
		}
		if _, err = standalone(&reference); err != nil {
			return nil, err
		}
	}
	if err := b.checkShapes(); err != nil {
		return nil, err
	}
	folder, err := b.folder()
	if err != nil {
		return nil, err
	}
	if err := b.findMachine(); err != nil {
		return nil, err
	}
	if byTensorRT(b.method) && b.typedOnly() {
		return nil, fmt.Errorf("TensorRT %s has no calibrators for --calibration-method %s (choose one of %v)", b.version, b.method, quantize.Methods())
	}
	const parsed = 17 // opset that the parsers of TensorRT 8 know
	if opset := b.source.Opset(); b.version.Major < 10 && opset > parsed {
		b.logger.Warn("the model is newer than this TensorRT; should it be refused, export it with opset=17", "opset", opset, "tensorrt", b.version.String())
	}
	heldOut, dataset, err := b.pictures()
	if err != nil {
		return nil, err
	}
	var gate *gatekeeper
	if b.judged() {
		gate = newGatekeeper(heldOut, b.gate, b.stderr)
		defer gate.Close()
		if err := gate.refer(ctx, reference, dataset); err != nil {
			return nil, err
		}
	}
	result := &built{Version: 1, Model: options.Path}
	for _, precision := range b.candidates() {
		done, err := b.try(ctx, precision, folder, gate, result)
		if err != nil {
			return nil, err
		}
		if done {
			result.Seconds = time.Since(started).Seconds()
			return result, nil
		}
	}
	result.Seconds = time.Since(started).Seconds()
	return result, result.refusal()
}

// checkShapes refuses shapes that the model does not take: TensorRT would build without them.
func (b *planning) checkShapes() error {
	inputs, err := b.source.Inputs()
	if err != nil {
		return err
	}
	open := false
	var names []string
	for i := range inputs {
		names = append(names, inputs[i].Name)
		open = open || len(inputs[i].Shape) > 0 && inputs[i].Shape[0] < 0
	}
	for i := range b.asked.Shapes {
		if name := b.asked.Shapes[i].Name; !slices.Contains(names, name) {
			return fmt.Errorf("--shape %s: the model has no such input (it has %s)", name, strings.Join(names, ", "))
		}
	}
	if b.asked.Batch.Max > 1 && !open {
		return fmt.Errorf("--batch %s: the model fixes its batch (leave --batch away, or export the model with a dynamic batch)", b.batch)
	}
	return nil
}

// folder is where the plan will be.
func (b *planning) folder() (string, error) {
	if b.output != "" {
		return filepath.Dir(b.output), checkOutput(b.output, b.model)
	}
	folder, err := tensorrt.CacheFolder()
	if err != nil {
		return "", fmt.Errorf("%w (give -o FILE)", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("plan cache: %w (give -o FILE, or set XDG_CACHE_HOME to a writable directory)", err)
	}
	return folder, checkOutput(filepath.Join(folder, "plan"), "")
}

// findMachine opens the GPU and TensorRT before any work that would be in vain without them.
func (b *planning) findMachine() error {
	device, err := cuda.Open(b.device)
	if err != nil {
		return err
	}
	defer device.Close()
	library, err := tensorrt.OpenLibrary(b.asked.Library)
	if err != nil {
		return err
	}
	b.version = library.Version
	if b.asked.TimingCache == "" {
		b.asked.TimingCache, err = tensorrt.Cache{}.TimingFile(library.Version, device.Facts())
	}
	return err
}

// pictures draws the calibration pictures and lists those of the gate, which are never the same.
func (b *planning) pictures() (heldOut []string, dataset *evaluate.Dataset, err error) {
	if b.judged() {
		if heldOut, dataset, err = readHeldOut(b.data); err != nil {
			return nil, nil, err
		}
	}
	if b.calibration == "" {
		return heldOut, dataset, nil
	}
	if b.files, err = quantize.ChoosePictures(b.calibration, b.count, b.seed); err != nil {
		return nil, nil, err
	}
	return heldOut, dataset, checkOverlap(heldOut, b.files)
}

// quantizedAlready reports whether the model has Q/DQ nodes.
func (b *planning) quantizedAlready() bool {
	return b.source.Operators()["QuantizeLinear"]+b.source.Operators()["DequantizeLinear"] > 0
}

// typedOnly reports that the model alone says in which precision it computes.
func (b *planning) typedOnly() bool { return b.typed || b.version.Major >= 11 }

// candidates are the precisions to try, best first. Auto itself leaves the choice to TensorRT.
func (b *planning) candidates() []engine.Precision {
	asked := engine.Precision(b.precision)
	switch {
	case asked == engine.Auto && b.quantizedAlready():
		return []engine.Precision{engine.INT8}
	case asked != engine.Auto || !b.judged():
		return []engine.Precision{asked}
	case b.calibration != "" || b.cache != "":
		return []engine.Precision{engine.INT8, engine.FP16, engine.FP32}
	}
	return []engine.Precision{engine.FP16, engine.FP32}
}

// try builds one precision in a folder of its own beside the plan's place and moves it there when it passes; false when the gate refuses.
func (b *planning) try(ctx context.Context, precision engine.Precision, folder string, gate *gatekeeper, result *built) (bool, error) {
	stage, err := os.MkdirTemp(folder, ".building-*")
	if err != nil {
		return false, fmt.Errorf("build: %w", err)
	}
	defer os.RemoveAll(stage)
	o := b.asked
	if o.Precision = precision; b.typedOnly() {
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
	staged, output := filepath.Join(stage, "plan"), b.output
	if output == "" {
		staged = ""
	}
	plan, err := buildPlan(ctx, o, staged, tensorrt.Cache{Folder: stage}, b.stderr)
	if ctx.Err() != nil {
		return false, fmt.Errorf("build: cancelled: %w", context.Cause(ctx))
	}
	if err != nil {
		return false, err
	}
	if output == "" {
		output = filepath.Join(folder, filepath.Base(plan.Path))
	}
	var verdict *quantize.Verdict
	if gate != nil {
		if verdict, err = b.judge(ctx, gate, plan.Path); err != nil {
			return false, err
		}
		if !verdict.Passed {
			b.logger.Warn("the gate refused the plan", "precision", precision, "reasons", strings.Join(verdict.Reasons, ", "))
			result.Refused = append(result.Refused, refusedPlan{precision, verdict})
			return false, nil
		}
		for _, before := range result.Refused {
			verdict.Refused = append(verdict.Refused, quantize.Refusal{Precision: before.Precision, Reasons: before.Verdict.Reasons})
		}
	}
	if err := os.Rename(plan.Path, output); err != nil {
		return false, fmt.Errorf("build: %w", err)
	}
	result.Plan, result.Precision, result.Facts, result.Bytes, result.Verdict = output, precision, &plan.Facts, plan.Bytes, verdict
	if precision == engine.Auto {
		result.Precision = plan.Facts.Precision
	}
	result.Unquantized = o.Calibration.Unquantized
	return true, saveVerdict(verdict, output)
}

// int8 finds the ranges of a model without Q/DQ nodes.
func (b *planning) int8(ctx context.Context, o *tensorrt.BuildOptions, stage string) error {
	switch {
	case !b.qdq && !b.typedOnly() && (b.calibration != "" || b.cache != ""):
		options := quantize.Options{Exclude: b.exclude}
		plan, err := quantize.NewPlan(b.source, options)
		if err != nil {
			return err
		}
		c := &calibration{
			files: b.files, cache: b.cache, method: b.method, unquantized: plan.Unquantized(), batch: b.calibrationBatch, folder: stage, logger: b.logger, stderr: b.stderr,
			measure: func(ctx context.Context) (quantize.Ranges, error) {
				_, _, ranges, err := b.quantization(o, engine.INT8).ranges(ctx, b.source, b.files, options, true, &quantized{})
				return ranges, err
			},
		}
		return c.prepare(ctx, b.source, o, b.version)
	case len(b.files) == 0:
		return errors.New("int8 needs calibration pictures (give --calibration DIR, or a model with Q/DQ nodes as edge-infer quantize writes it)")
	}
	why := "--qdq"
	if b.typedOnly() {
		why = "TensorRT " + b.version.String() + " without calibrators"
	}
	b.logger.Info("putting Q/DQ nodes into the model first", "for", why)
	return b.rewrite(ctx, o, engine.INT8, b.files)
}

// quantization is what quantize does to the model of these options.
func (b *planning) quantization(o *tensorrt.BuildOptions, to engine.Precision) *quantization {
	return &quantization{
		model: o.Path, to: string(to), method: b.method, cache: b.cache, percentile: quantize.DefaultPercentile, exclude: b.exclude, batch: max(b.calibrationBatch, 1),
		stderr: b.stderr,
	}
}

// rewrite converts the model itself to a precision.
func (b *planning) rewrite(ctx context.Context, o *tensorrt.BuildOptions, to engine.Precision, files []string) error {
	q := b.quantization(o, to)
	var made *onnx.Model
	var err error
	if to == engine.INT8 {
		made, err = q.int8(ctx, b.source, files, nil, &quantized{})
	} else {
		made, err = q.half(ctx, b.source, files, &quantized{})
	}
	if err != nil {
		return err
	}
	o.Model, err = made.Bytes()
	return err
}

// judge opens a plan and compares it.
func (b *planning) judge(ctx context.Context, gate *gatekeeper, path string) (*quantize.Verdict, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	candidate, err := tensorrt.Options{
		Options: engine.Options{Path: path, Bytes: file, Device: b.device, Library: b.library, Slots: 1}, HostCode: b.versionCompatible, Log: b.logger,
	}.Open()
	if err != nil {
		return nil, err
	}
	verdict, err := gate.judge(ctx, candidate)
	if err == nil {
		verdict.Of(file, candidate.Model().Precision)
	}
	return verdict, err
}

func (r *built) refusal() error {
	var tried []string
	for _, refused := range r.Refused {
		tried = append(tried, fmt.Sprintf("%s: %s", strings.ToUpper(string(refused.Precision)), strings.Join(refused.Verdict.Reasons, ", ")))
	}
	return fmt.Errorf("the gate refused every plan and none was kept: %s (use more calibration pictures like the camera's, edge-infer quantize --search, or a higher precision)",
		strings.Join(tried, "; "))
}

func (r *built) print(out io.Writer) error {
	var text strings.Builder
	for _, refused := range r.Refused {
		fmt.Fprintf(&text, "%s: gate %s\n", strings.ToUpper(string(refused.Precision)), verdictText(refused.Verdict))
	}
	if r.Plan != "" {
		precision := strings.ToUpper(string(r.Precision))
		if r.Precision == engine.Auto {
			precision = "the precision of the file"
		}
		fmt.Fprintf(&text, "%s in %s for TensorRT %s on %s (%s): %d layers, %d bytes, built in %.1f s\n",
			r.Model, precision, r.Facts.Version, r.Facts.GPU, r.Facts.Architecture, r.Facts.Layers, r.Bytes, r.Facts.BuildSeconds)
		if r.Verdict != nil {
			fmt.Fprintf(&text, "gate %s\n", verdictText(r.Verdict))
		}
		fmt.Fprintf(&text, "wrote %s\n", r.Plan)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
