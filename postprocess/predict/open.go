package predict

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Demo is the name of the embedded model.
const Demo = "demo"

// Options says what to open and on what. Only the model is needed; the zero value of it all opens the embedded one on the best backend.
type Options struct {
	// Model is an ONNX file or an engine plan, or Demo or nothing for the embedded model. LabelsFile has one label a line; they replace
	// those of the model.
	Model, LabelsFile string
	// ResolveModel takes a Model that is a name to its file, and to its labels where it has some; nil where models have no names.
	ResolveModel func(model string) (path, labels string, err error)
	// Options are those of every backend. Load fills Path, Bytes and Metadata; Bytes that are there already stand for the file, Metadata
	// for what the file says. Filter is Decoding's.
	engine.Options
	// Backend is the name of a backend as engine/auto knows it, "auto" or nothing for the best one that takes the model.
	Backend string
	// Look finds out how large the images to come are, for a model that leaves its size open and has no Width, Height or Sources; nil gives
	// it the size of its metadata. Load asks once, or Open, where only a server knows the model. Engine plans have their size.
	ProbeSizes func() []engine.Size
	// TensorInputs says that the model is run on Tensors: it keeps the inputs of its file, whatever Open would know to give them.
	TensorInputs bool
	// Standby is the backend that takes over on this machine while the servers of a Backend on other machines do not answer, and that serves
	// until they are there; nothing for none. It runs the Model, which must be the servers'.
	Standby string
	// PerImageErrors has images that a Backend on other machines did not do fail one by one, each with its Image.Err, instead of their request.
	PerImageErrors bool
	// Reason says why Backend is named, where nobody asked for it; see engine/auto.
	Reason string
	// Candidates are the backends to choose from; nil for those of engine/auto.
	Candidates []auto.Candidate
	// Build builds the plan that TensorRT lacks when it is the Backend by name, and puts it into the cache; nil leaves it at the error.
	// Building takes minutes and much memory, so a program may want to do it in a child process (see tensorrt.Child). Chosen automatically
	// TensorRT is passed over until somebody has built its plan.
	Build func(context.Context, tensorrt.BuildOptions) error
	// Level is the builder's effort for that plan, nil for TensorRT's own. It belongs to a Backend of tensorrt by name.
	Level *int
	// ReserveCPU says that a missing plan is built meanwhile: a backend that computes on the CPU leaves half of it to the builder.
	ReserveCPU bool
	Decoding   Decoding
	// Log gets what was refused and why; nil for slog.Default.
	Log *slog.Logger

	loaded bool
}

// ForModel is for a further model beside o's on the same device: nothing that is known of o's model holds for it.
func (o *Options) ForModel(model string) Options {
	other := *o
	other.Model, other.LabelsFile, other.loaded = model, "", false
	other.Path, other.Bytes, other.Metadata, other.Shapes, other.Sources = "", nil, engine.Metadata{}, nil, nil
	return other
}

// Load reads the model and its labels, and what an ONNX file says of itself. Open does it where it has not been done; call it before to
// look at the model, or to open it several times. What is set afterwards stands.
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
		if o.Model = path; o.LabelsFile == "" {
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
		return nil //nolint:nilerr // the backend says better what is wrong with the file
	}
	metadata, _ := engine.ParseMetadata(model.Metadata())
	o.Metadata = metadata.Override(o.Metadata)
	return o.settle(model)
}

// IsRemote reports whether the network runs on other machines.
func (o *Options) IsRemote() bool { return o.remote() }

// remote reports whether the backend has the model itself. A file that is named then only says what the model means.
func (o *Options) remote() bool {
	return auto.Choice{Engine: o.Backend, Candidates: o.Candidates}.Remote()
}

// labels reads the file of labels, which is the last thing to load.
func (o *Options) labels() error {
	if o.LabelsFile == "" {
		o.loaded = true
		return nil
	}
	file, err := os.Open(o.LabelsFile)
	if err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	defer file.Close()
	if o.Metadata.Labels, err = engine.ReadLabels(file); err != nil {
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
		o.Path, o.Bytes = Demo, demo.Model()
		return nil
	}
	if info, err := os.Stat(o.Model); err == nil && !info.IsDir() && !info.Mode().IsRegular() { // might never end
		return fmt.Errorf("model %s: a pipe or a device (copy it into a file)", o.Model)
	}
	data, err := os.ReadFile(o.Model)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("model %s: no such file (name an ONNX file, or none for the demo model)", o.Model)
	case err != nil:
		return fmt.Errorf("model: %w", err)
	}
	if tensorrt.IsPlan(data) {
		warning, err := tensorrt.CheckPlanFile(o.Model)
		if err != nil {
			return err
		}
		if warning != "" {
			o.logger().Warn("engine plan of somebody else", "warning", warning)
		}
	}
	o.Path, o.Bytes = o.Model, data
	beside, err := engine.ReadPreprocess(o.Model)
	o.Metadata.Preprocess = beside.Override(o.Metadata.Preprocess)
	return err
}

// Open loads the model, opens the backend and fits a decoder to the outputs. The error says what to do; it is ErrSetting where another
// setting would help, and an *engine.Error where a backend refused.
func Open(ctx context.Context, o Options) (*Network, error) {
	if err := o.Load(); err != nil {
		return nil, err
	}
	o.Filter = o.Decoding.Filter
	e, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	if e, err = o.resettle(ctx, e); err != nil {
		return nil, err
	}
	if e, err = o.refit(ctx, e); err != nil {
		return nil, err
	}
	if err := o.fits(e.Model()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	n, err := Wrap(e, o.Decoding)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	n.lossy = o.PerImageErrors && o.remote()
	return n, nil
}

// fits refuses sides that somebody set for a model that has its own.
func (o *Options) fits(m engine.Model) error {
	if o.Width == 0 || m.Image == nil || o.Width == m.Width && o.Height == m.Height {
		return nil
	}
	return settingError{fmt.Errorf("model %s takes images of %dx%d only, not %dx%d (omit --imgsz)", m.Path, m.Height, m.Width,
		o.Height, o.Width)}
}

// open opens the backend, and has the plan built that it lacks.
func (o *Options) open(ctx context.Context) (engine.Engine, error) {
	logger := o.logger()
	choice := auto.Choice{Engine: o.Backend, Reason: o.Reason, Yielding: o.ReserveCPU, Candidates: o.Candidates}
	if o.Level != nil && o.Backend == tensorrt.Name && o.Candidates == nil {
		choice.Candidates = []auto.Candidate{o.leveled()}
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

// leveled is TensorRT with the plans of a level.
func (o *Options) leveled() auto.Candidate {
	return auto.Candidate{
		Engine: tensorrt.Name, Title: tensorrt.Name,
		Open: func(_ context.Context, _ string, options engine.Options, logger *slog.Logger) (engine.Engine, error) {
			return tensorrt.Options{Options: options, Build: tensorrt.BuildOptions{OptimizationLevel: o.Level}, Log: logger}.Open()
		},
	}
}

// Plan describes the plan that TensorRT looks for in its cache when it opens the model, which must have been loaded.
func (o *Options) Plan() tensorrt.BuildOptions {
	t := tensorrt.Options{Options: o.Options, Build: tensorrt.BuildOptions{OptimizationLevel: o.Level}}
	plan := t.BuildOptions()
	plan.Log = o.Log
	return plan
}

// NeedsPlan reports whether TensorRT would run the model, which must have been loaded, if only its plan had been built.
func (o *Options) NeedsPlan() bool {
	e, err := tensorrt.Options{Options: o.Options, Build: tensorrt.BuildOptions{OptimizationLevel: o.Level}, Log: o.Log}.Open()
	if err == nil {
		_ = e.Close() // it was only a question
	}
	return errors.Is(err, tensorrt.ErrNoPlan)
}
