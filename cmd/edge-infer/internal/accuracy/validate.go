package accuracy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/imagesize"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/plot"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/format"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Validate measures the accuracy of a model on a dataset.
type Validate struct {
	Data           string // directory of images with labels, or file of labels
	Split          string // part of the dataset; empty: validation
	Limit          int    // number of images; 0 for all
	Reference      string // engine to compare with, in FP32; optional
	ReferenceModel string // model of the reference, run unchanged; empty: the same model
	Predictions    string // file for the detections as a COCO result list; optional
	Plots          string // directory of the plots
	Convention     string // name of a Convention
	Limits         Limits

	// For labels of maps: number of the first class in masks, depth units per metre, and the largest depth that counts in metres.
	FirstClass           int
	DepthScale, MaxDepth float64

	Config   *config.Config
	Logger   *slog.Logger
	Progress progress.Reporter

	// Set by Run.
	counted Convention
	probe   func() []engine.Size // sizes of the images, for a model with dynamic input size
}

// Flags adds the flags of the job.
func (v *Validate) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&v.Data, "data", "",
		"images with labels: a directory of COCO (annotations/instances_*.json), a data.yaml, or a directory with images/ and labels/")
	flags.StringVar(&v.Split, "split", "", "part of the dataset, like val or train2017; default: validation")
	flags.IntVar(&v.Limit, "limit", 0, "use only the first images; 0: all")
	flags.StringVar(&v.Reference, "reference", "", "engine to compare with, for instance onnxruntime, in fp32")
	flags.StringVar(&v.ReferenceModel, "reference-model", "",
		"ONNX file for the reference, run unchanged; demo: the embedded model; default: the same model")
	flags.StringVar(&v.Predictions, "predictions", "", "JSON file for all detections, as a COCO result list")
	flags.StringVar(&v.Plots, "plots", "",
		"draw precision-recall curves, F1 over confidence and the confusion matrix into this directory, as SVG and PNG")
	flags.StringVar(&v.Convention, "convention", Published,
		"which detections average precision counts: "+Published+" as published figures do, every class of a box and suppression at IoU 0.7, or "+
			Service+", the best class of a box and the settings --iou and --max-detections")
	flags.IntVar(&v.FirstClass, "first-class", 0, "number of the first class in PNG masks, for instance 1 in ADE20K")
	flags.Float64Var(&v.DepthScale, "depth-scale", 1,
		"units of depth labels per metre: 1000 for millimetres, 256 for KITTI")
	flags.Float64Var(&v.MaxDepth, "max-depth", 100, "largest labelled depth that counts, in metres")
	v.Limits.Flags(flags, 0)
}

// Check validates the settings.
func (v *Validate) Check() error {
	if v.Data == "" {
		return config.Usagef("validate needs --data DIR")
	}
	switch {
	case v.Limit < 0:
		return config.Usagef("--limit must not be negative")
	case v.FirstClass < 0 || v.FirstClass >= evaluate.IgnoredClass:
		return config.Usagef("--first-class %d must be 0 to %d", v.FirstClass, evaluate.IgnoredClass-1)
	case !(v.DepthScale > 0 && v.MaxDepth > 0 && v.MaxDepth <= 1e6):
		return config.Usagef("--depth-scale %v and --max-depth %v must be over 0", v.DepthScale, v.MaxDepth)
	}
	if v.Predictions != "" {
		if err := atomicfile.Check(v.Predictions); err != nil {
			return err
		}
	}
	if v.Plots != "" {
		if err := plot.Check(v.Plots); err != nil {
			return err
		}
	}
	v.Limits.wanted()
	if v.Reference == "" && (v.ReferenceModel != "" || !v.Limits.Off()) {
		return config.Usagef("--reference-model and --gate compare with --reference ENGINE")
	}
	return v.Limits.Check()
}

// Run measures the accuracy. A refusal of the gate is part of the report, see Report.Refusal.
func (v *Validate) Run(ctx context.Context) (*Report, error) {
	var err error
	if v.counted, err = newConvention(v.Convention, &v.Config.Detect); err != nil {
		return nil, err
	}
	labelled, err := evaluate.FindLabelMaps(v.Data, v.Split)
	if err != nil {
		return nil, err
	}
	if labelled != nil {
		return v.maps(ctx, labelled, nil)
	}
	dataset, paths, err := v.images()
	if err != nil {
		return nil, err
	}
	media.WarnUnread(v.Logger, true, v.Data)
	var reference config.Config
	if v.Reference != "" { // fails before the long work
		if reference, err = v.ReferenceConfig(); err != nil {
			return nil, err
		}
	}
	started := time.Now()
	opened, err := v.open(ctx, *v.Config, paths, nil)
	if err != nil {
		return nil, err
	}
	defer opened.predictor.Close()
	if dataset == nil && opened.model.Recognised.Task.Maps() {
		return v.maps(ctx, unlabelled(paths), opened)
	}
	candidate, seen, err := v.detect(ctx, opened, paths, dataset)
	if err = errors.Join(err, opened.predictor.Close()); err != nil { // frees memory for the reference
		return nil, err
	}
	labels := opened.model.Metadata.Labels
	if dataset != nil && dataset.ClassDirectories && candidate.task != engine.Classify {
		if v.Reference == "" {
			return nil, fmt.Errorf("%s: %w: directories named after classes are for classifiers", v.Data, evaluate.ErrNoLabels)
		}
		dataset = nil
	}
	report := &Report{Version: 1, Convention: v.counted, Measurement: *candidate, Images: len(paths)}
	if inference := &v.Config.Inference; inference.Tile > 0 {
		report.Tiles = &Tiles{inference.Tile, inference.Overlap}
	}
	report.Augment = v.Config.Inference.Augment
	if dataset != nil {
		if err := dataset.Relabel(labels, v.Config.Detect.Classes); err != nil {
			return nil, err
		}
		report.score(dataset, seen, labels, &v.Config.Detect)
	}
	if err := v.write(dataset, paths, seen); err != nil {
		return nil, err
	}
	if v.Reference != "" {
		other, known, err := v.refer(ctx, reference, paths, candidate)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		report.Reference = other
		if dataset != nil {
			other.score(dataset, known)
		}
		if err := v.compare(report, dataset, paths, known, seen); err != nil {
			return nil, err
		}
	}
	report.Seconds = time.Since(started).Seconds()
	return report, nil
}

// write writes the detections to v.Predictions, with the ids of the dataset's annotation file if it has one. The dataset may be nil.
func (v *Validate) write(dataset *evaluate.Dataset, paths []string, seen [][]postprocess.Detection) error {
	if v.Predictions == "" {
		return nil
	}
	var text bytes.Buffer
	results := format.COCO{Writer: &text}
	if dataset != nil && dataset.Categories != nil {
		results.Category = dataset.Category
	}
	for i, path := range paths {
		img := format.Image{Path: path, Detections: seen[i]}
		if dataset != nil {
			known := &dataset.Images[i]
			img.Width, img.Height = known.Width, known.Height
			if dataset.Categories != nil {
				results.ID = func(*format.Image) any { return known.ID }
			}
		}
		if err := results.Write(&img); err != nil {
			return err
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	if err := atomicfile.Write(v.Predictions, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("predictions: %w", err)
	}
	return nil
}

// images lists the images; the dataset is nil if they have no labels, which a comparison with a reference does not need.
func (v *Validate) images() (dataset *evaluate.Dataset, paths []string, err error) {
	dataset, err = evaluate.ReadDataset(v.Data, v.Split)
	if errors.Is(err, evaluate.ErrNoLabels) && v.Reference != "" {
		if paths, err = media.Expand(v.Data); v.Limit > 0 {
			paths = paths[:min(v.Limit, len(paths))]
		}
		return nil, paths, err
	}
	if err != nil {
		return nil, nil, err
	}
	logIgnored(dataset, v.Logger)
	if v.Limit > 0 {
		dataset.Images = dataset.Images[:min(v.Limit, len(dataset.Images))]
	}
	for i := range dataset.Images {
		paths = append(paths, dataset.Images[i].Path)
	}
	return dataset, paths, nil
}

// ReferenceConfig returns the configuration of the reference: the same model in FP32, or v.ReferenceModel. For an engine plan it is the
// model from which the plan was built.
func (v *Validate) ReferenceConfig() (config.Config, error) {
	c := *v.Config
	c.Engine.Precision = string(engine.FP32)
	if c.Engine.Backend != v.Reference {
		c.Engine.Backend, c.Engine.Library, c.Engine.Plugins = v.Reference, "", nil // they belong to another backend
	}
	source := v.ReferenceModel
	if source != "" && v.Reference != tensorrt.Name {
		c.Engine.Precision = string(engine.Auto) // the precision of the file
	}
	if source == "" && c.Model.Path != "" && v.Reference != tensorrt.Name {
		file, err := os.ReadFile(c.Model.Path)
		if err != nil {
			return c, fmt.Errorf("model: %w", err)
		}
		if tensorrt.IsPlan(file) {
			facts, _, err := tensorrt.ReadPlan(file)
			if err != nil {
				return c, fmt.Errorf("model %s: %w", c.Model.Path, err)
			}
			source = facts.Model
			if _, err := os.Stat(source); err != nil && source != predict.Demo {
				return c, fmt.Errorf("the model %q, from which the plan %s was built, is not here (name it with --reference-model)",
					source, c.Model.Path)
			}
		}
	}
	if source != "" {
		c.Model.Path = source
	}
	return c, nil
}

// compare compares the detections of both engines. The dataset may be nil.
func (v *Validate) compare(
	report *Report, dataset *evaluate.Dataset, paths []string, reference, seen [][]postprocess.Detection,
) error {
	comparer := &Comparer{Reported: float32(v.Config.Detect.Confidence), IoU: float32(v.Config.Detect.IoU)}
	if dataset != nil {
		for i := range dataset.Images {
			comparer.Truths = append(comparer.Truths, dataset.Images[i].Truths)
		}
	}
	for i := range paths {
		comparer.Add(Reference, i, reference[i])
		comparer.Add(Candidate, i, seen[i])
	}
	agreement := comparer.Agreement()
	report.Agreement = &agreement
	if v.Limits.Off() {
		return nil
	}
	verdict, err := quantize.NewVerdict(comparer.Compare(), v.Limits.MatchRate, v.Limits.MaxLoss, &quantize.Images{Files: paths}, nil)
	report.Verdict = verdict
	return err
}

// opened is a network to measure.
type opened struct {
	predictor predict.Predictor
	model     predict.Model
	measured  Measurement // without results
}

// open opens a network for the images of the paths, with the input size of other if that is not nil. The caller closes its predictor.
func (v *Validate) open(ctx context.Context, c config.Config, paths []string, other *Measurement) (*opened, error) {
	options := network.Options(&c, postprocess.EvaluationMinScore, v.Logger)
	v.counted.decode(&options.Decoding)
	options.Decoding.TopK, options.Decoding.TopAlways = 5, true // for top-5 accuracy
	options.Build = network.PlanBuilder{Progress: v.Progress}.Build
	if v.probe == nil {
		v.probe = sync.OnceValue(func() []engine.Size { return imagesize.ProbeFiles(ctx, paths, v.Config.Inference.Tile) })
	}
	options.ProbeSizes = v.probe
	if err := options.Load(); err != nil {
		return nil, err
	}
	if other != nil && options.Sources != nil { // the same input as the other network
		options.Width, options.Height = other.width, other.height
	}
	builder := network.PredictorBuilder{Inference: c.Inference}
	predictor, err := builder.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	o := &opened{predictor: predictor, model: predictor.Model()}
	o.measured = newMeasurement(&o.model, len(options.Bytes))
	return o, nil
}

// refer runs the reference on the images with the input size of the candidate.
func (v *Validate) refer(ctx context.Context, c config.Config, paths []string, candidate *Measurement) (*Measurement,
	[][]postprocess.Detection, error,
) {
	reference, err := v.open(ctx, c, paths, candidate)
	if err != nil {
		return nil, nil, err
	}
	defer reference.predictor.Close()
	return v.detect(ctx, reference, paths, nil)
}

// detect returns the detections of a network from the minimum score on, by image. It converts the labels of the dataset, which may be nil,
// to the decoded images.
func (v *Validate) detect(ctx context.Context, o *opened, paths []string, dataset *evaluate.Dataset) (*Measurement,
	[][]postprocess.Detection, error,
) {
	model := &o.model
	if task := model.Recognised.Task; task.Maps() {
		return nil, nil, mapsError(task)
	}
	if dataset != nil && model.Recognised.Task == engine.Pose {
		if err := dataset.CheckKeypoints(model.Metadata.KeypointNames); err != nil {
			return nil, nil, err
		}
	}
	step := v.Progress.Begin("images on " + model.Backend)
	defer step.Close()
	seen := make([][]postprocess.Detection, 0, len(paths))
	var times clocks
	files := &media.Run{Predictors: []predict.Predictor{o.predictor}, Each: func(_ string, number int, frame *capture.Frame,
		img *predict.Result, timing engine.Timing,
	) error {
		if number > 0 {
			return errors.New("is not a single image")
		}
		if dataset != nil {
			if err := dataset.Images[len(seen)].Fit(frame.Width, frame.Height); err != nil {
				return err
			}
		}
		seen = append(seen, kept(img.Detections, frame.Width, frame.Height))
		times.add(timing)
		step.Count(len(seen), len(paths))
		return nil
	}}
	if err := files.Files(ctx, paths); err != nil {
		return nil, nil, err
	}
	measured := o.measured
	measured.Request, measured.Inference = times.medians()
	return &measured, seen, nil
}

// kept returns copies of detections, with masks as pixels.
func kept(detections []postprocess.Detection, width, height int) []postprocess.Detection {
	all := make([]postprocess.Detection, len(detections))
	for i := range detections {
		if all[i] = detections[i].Clone(); all[i].Detail != nil && all[i].Detail.Mask != nil {
			all[i].Detail.Mask.Rasterize(width, height)
		}
	}
	return all
}
