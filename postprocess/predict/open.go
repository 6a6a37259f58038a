package predict

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
	"github.com/edge-infer/edge-infer/internal/labelfile"
)

// Demo is the name of the embedded model.
const Demo = "demo"

// Options configures Open. The zero value opens the embedded model on the best backend.
type Options struct {
	// Model is an ONNX file or an engine plan; Demo or empty for the embedded model. LabelsFile has the class names, see labelfile.Read; they
	// replace those of the model.
	Model, LabelsFile string
	// ResolveModel returns the file of a Model that is a name, and its labels file if it has one; nil where models have no names.
	ResolveModel func(model string) (path, labels string, err error)
	// Options apply to every backend. Load sets Path, Bytes and Metadata; Bytes that are set already replace the file, Metadata overrides
	// the file's. Open sets Filter.
	engine.Options
	// Backend is the name of a backend of engine/auto; "auto" or empty for the best one that accepts the model.
	Backend string
	// ProbeSizes returns the sizes of the images to come, for a model that leaves its size open and has no Width, Height or Sources; nil
	// selects the size in its metadata. Load calls it once, or Open where only a server knows the model. Engine plans have a fixed size.
	ProbeSizes func() []engine.Size
	// TensorInputs keeps all inputs of the file, for Raw.Tensors. Otherwise inputs with known values become constants.
	TensorInputs bool
	// Standby is the backend that serves on this machine while the servers of a remote Backend do not answer; empty for none. It runs the
	// Model, which must be that of the servers.
	Standby string
	// PerImageErrors is for cameras, whose next image is there soon: a failure of a remote Backend is in each Result.Err instead of an error
	// of Wait, and so is output that is invalid before the first valid one, which others judge by all of their images.
	PerImageErrors bool
	// Reason is why Backend was selected if it was not by the user; see engine/auto.
	Reason string
	// Candidates are the backends to choose from; nil for those of engine/auto.
	Candidates []auto.Candidate
	// Build builds a missing plan into the cache when TensorRT is the named Backend; nil returns the error. Building takes minutes and much
	// memory, so that a program may want to do it in a child process (see tensorrt.Child). With Backend auto TensorRT is skipped until its
	// plan exists.
	Build func(context.Context, tensorrt.BuildOptions) error
	// Level is the builder optimization level of that plan, nil for TensorRT's default. It needs the Backend tensorrt.
	Level *int
	// ReserveCPU leaves half of the CPU to a plan builder that runs at the same time.
	ReserveCPU bool
	Decoding   Decoding
	// Log logs rejected backends; nil for slog.Default.
	Log *slog.Logger

	loaded   bool
	inferred bool // the preprocessing is that of Ultralytics' detectors, because the file has their metadata
}

// ForModel returns options for another model on the same device, without anything specific to o's model.
func (o *Options) ForModel(model string) Options {
	other := *o
	other.Model = model
	other.LabelsFile = ""
	other.loaded = false
	other.Path = ""
	other.Bytes = nil
	other.Metadata = engine.Metadata{}
	other.Shapes = nil
	other.Sources = nil
	return other
}

// Load reads the model, its labels and the metadata of an ONNX file. Open calls it if needed; call it before to inspect the model, or to
// open it several times. Fields set afterwards are kept.
func (o *Options) Load() error {
	if o.loaded {
		return nil
	}
	if o.Model == "" && o.Bytes == nil && o.remote() {
		return o.labels()
	}
	if o.ResolveModel != nil && o.Bytes == nil {
		path, labels, err := o.ResolveModel(o.Model)
		if err != nil {
			return err
		}
		o.Model = path
		if o.LabelsFile == "" {
			o.LabelsFile = labels
		}
	}
	if o.Bytes == nil {
		if err := o.read(); err != nil {
			return err
		}
	}
	if o.Path == "" {
		o.Path = o.Model
	}
	if err := o.labels(); err != nil {
		return err
	}
	if tensorrt.IsPlan(o.Bytes) {
		return nil
	}
	model, err := onnx.Parse(o.Path, o.Bytes)
	if err != nil {
		return nil //nolint:nilerr // the backend's error is more precise
	}
	metadata, _ := engine.ParseMetadata(model.Metadata())
	describeRows(model, &metadata)
	o.inferred = o.Metadata.Preprocess.IsZero() && model.Metadata()[engine.PreprocessProperty] == "" && isLetterbox(metadata.Preprocess)
	o.Metadata = metadata.Override(o.Metadata)
	return o.complete(model)
}

// IsRemote reports whether the network runs on other machines.
func (o *Options) IsRemote() bool { return o.remote() }

// remote reports whether the backend has the model itself. A named file then only provides metadata.
func (o *Options) remote() bool {
	return auto.Choice{Engine: o.Backend, Candidates: o.Candidates}.Remote()
}

// labels reads the labels file, the last step of Load.
func (o *Options) labels() error {
	if o.LabelsFile == "" {
		o.loaded = true
		return nil
	}
	text, err := boundedfile.Read(o.LabelsFile, boundedfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		if known := engine.KnownLabels(o.LabelsFile); known != nil {
			o.Metadata.Labels = known
			o.loaded = true
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	if o.Metadata.Labels, err = labelfile.Read(bytes.NewReader(text)); err != nil {
		return fmt.Errorf("labels %s: %w", o.LabelsFile, err)
	}
	o.loaded = true
	return nil
}

func (o *Options) logger() *slog.Logger {
	if o.Log == nil {
		return slog.Default()
	}
	return o.Log
}

func (o *Options) read() error {
	if o.Model == "" || o.Model == Demo {
		o.Path = Demo
		o.Bytes = demo.Model()
		return nil
	}
	if info, err := boundedfile.Stat(o.Model); err == nil && !info.IsDir() && !info.Mode().IsRegular() { // reading might block
		return fmt.Errorf("model %s: a pipe or a device (copy it into a file)", o.Model)
	}
	data, err := boundedfile.ReadLarge(o.Model)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("model %s: no such file (%s)", o.Model, modelHint(o.Model))
	case err != nil:
		return fmt.Errorf("model: %w", err)
	}
	if tensorrt.IsPlan(data) {
		warning, err := tensorrt.CheckPlanFile(o.Model)
		if err != nil {
			return err
		}
		if warning != "" {
			o.logger().Warn("engine plan of another user", "warning", warning)
		}
	}
	o.Path = o.Model
	o.Bytes = data
	fromFile, err := engine.ReadPreprocess(o.Model)
	o.Metadata.Preprocess = fromFile.Override(o.Metadata.Preprocess)
	return err
}

// Open loads the model, opens the backend and makes a decoder for the outputs. The error is an ErrSetting if another setting would help,
// and an *engine.Error if a backend rejected the model.
func Open(ctx context.Context, o Options) (*Network, error) {
	if err := o.Load(); err != nil {
		return nil, err
	}
	o.Filter = o.Decoding.Filter
	e, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	if e, err = o.reopenPreset(ctx, e); err != nil {
		return nil, err
	}
	if e, err = o.reopenSize(ctx, e); err != nil {
		return nil, err
	}
	if err := o.checkSize(e.Model()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	n, err := Wrap(e, o.Decoding)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	n.unnamed.warn = o.warnUnnamed
	o.warnIgnored(n.model.Metadata.Ignored)
	n.perImageErrors = o.PerImageErrors && o.remote()
	n.evidence.strict = o.PerImageErrors
	return n, nil
}

// checkSize returns an error for a size that was set for a model with a fixed one.
func (o *Options) checkSize(m engine.Model) error {
	if o.Width == 0 || m.Image == nil || o.Width == m.Width && o.Height == m.Height {
		return nil
	}
	return settingError{fmt.Errorf("model %s takes images of %dx%d only, not %dx%d (omit --imgsz)", m.Path, m.Height, m.Width,
		o.Height, o.Width)}
}

// open opens the backend, and builds its plan if that is missing.
func (o *Options) open(ctx context.Context) (engine.Engine, error) {
	logger := o.logger()
	choice := auto.Choice{Engine: o.Backend, Reason: o.Reason, Yielding: o.ReserveCPU, Candidates: o.Candidates}
	if o.Level != nil && o.Backend == tensorrt.Name && o.Candidates == nil {
		choice.Candidates = []auto.Candidate{o.tensorrtCandidate()}
	}
	if o.Standby != "" && choice.Remote() {
		return o.openStandby(ctx, choice, logger)
	}
	e, err := auto.Open(ctx, o.Options, choice, logger)
	if o.Build == nil || o.Backend != tensorrt.Name || !errors.Is(err, tensorrt.ErrNoPlan) {
		return e, err
	}
	logger.Info("building the engine plan, this takes minutes once", "model", o.Path)
	if err := o.Build(ctx, o.Plan()); err != nil {
		return nil, fmt.Errorf("engine plan not built: %w", err)
	}
	return auto.Open(ctx, o.Options, choice, logger)
}

// tensorrtCandidate returns TensorRT with plans of the level.
func (o *Options) tensorrtCandidate() auto.Candidate {
	return auto.Candidate{
		Engine: tensorrt.Name, Title: tensorrt.Name,
		Open: func(_ context.Context, _ string, options engine.Options, logger *slog.Logger) (engine.Engine, error) {
			return tensorrt.Options{Options: options, Build: tensorrt.BuildOptions{OptimizationLevel: o.Level}, Log: logger}.Open()
		},
	}
}

// Plan describes the plan that TensorRT uses for the model, which must have been loaded.
func (o *Options) Plan() tensorrt.BuildOptions {
	t := tensorrt.Options{Options: o.Options, Build: tensorrt.BuildOptions{OptimizationLevel: o.Level}}
	plan := t.BuildOptions()
	plan.Log = o.Log
	return plan
}

// NeedsPlan reports whether TensorRT lacks only a plan to run the model, which must have been loaded.
func (o *Options) NeedsPlan() bool {
	e, err := tensorrt.Options{Options: o.Options, Build: tensorrt.BuildOptions{OptimizationLevel: o.Level}, Log: o.Log}.Open()
	if err == nil {
		_ = e.Close()
	}
	return errors.Is(err, tensorrt.ErrNoPlan)
}
