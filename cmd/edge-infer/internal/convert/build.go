package convert

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Build writes a TensorRT engine plan and proves its accuracy.
type Build struct {
	Model        string   // ONNX file; empty for the demo model
	ModelOptions          // of the model
	Precision    string   // auto, fp32, fp16 or int8
	Output       string   // plan file; empty for the cache
	Batch        string   // MIN,OPT,MAX or the most
	Shapes       []string // NAME=MIN,OPT,MAX each
	Workspace    string   // like 1GiB; empty for TensorRT's own
	Images       string   // directory of calibration images
	Count        int      // calibration images; 0 for all
	Seed         uint64   // which images are drawn
	// Calibration images that run at once; 0 for one, in TensorRT's own calibrators for what the plan is tuned for.
	CalibrationBatch   int
	Cache              string   // file that keeps the measured ranges
	Method             string   // how INT8 ranges are chosen
	QDQ                bool     // Q/DQ nodes also where TensorRT has calibrators
	Exclude            []string // layers that INT8 leaves in floating point
	LayerLoss          float64  // of the head's outputs, from which on a layer stays out of INT8
	OptimizationLevel  int      // of the builder's effort; -1 for the release's own
	DLA                int      // core; -1 for the GPU alone
	GPU                int      // GPU
	Library            string   // TensorRT's, instead of searching
	Plugins            []string // shared objects with operators of the model's own
	TimingCache        string   // file of kernel timings, instead of one in the cache
	VersionCompatible  bool
	HardwareCompatible bool
	StronglyTyped      bool   // every type is the model's
	Data               string // directory that the gate judges on
	Limits             accuracy.Limits
	ReferenceModel     string // that the gate compares with, instead of the model itself
	Search             bool   // layers are left out of INT8 until the gate passes

	Logger   *slog.Logger
	Progress progress.Reporter

	given        *pflag.FlagSet        // the command line; nil without one
	buildOptions tensorrt.BuildOptions // what the fields say, without the model; set by Check

	// Set by Run.
	version tensorrt.Version
	source  *source
	files   []string // calibration images
	known   *ranges  // what INT8 was calibrated with; nil where TensorRT measured, or a table was read
}

// Flags are the job's place on a command line.
func (b *Build) Flags(flags *pflag.FlagSet) {
	b.given = flags
	flags.StringVar(&b.Precision, "precision", string(engine.Auto), "auto, fp32, fp16 or int8")
	flags.StringVarP(&b.Output, "output", "o", "", "plan file to write, instead of the cache")
	flags.StringVar(&b.Batch, "batch", "1", "images in a batch, MIN,OPT,MAX or the most, for a model that leaves it open")
	flags.StringArrayVar(&b.Shapes, "shape", nil,
		"NAME=MIN,OPT,MAX of an input, like images=1x3x640x640,4x3x640x640,8x3x640x640; may be given several times")
	flags.StringVar(&b.Workspace, "workspace", "", "most scratch memory of a layer, like 1GiB")
	b.ModelOptions.flags(flags)
	flags.StringVar(&b.Images, "images", "", "directory of calibration images for INT8, subdirectories included")
	flags.IntVar(&b.Count, "count", 200, "number of calibration images, drawn with --seed; 0 for all")
	flags.Uint64Var(&b.Seed, "seed", 1, "which images are drawn")
	flags.IntVar(&b.CalibrationBatch, "calibration-batch", 0,
		"calibration images that run at once, for a model that leaves its batch open; "+
			"0 for one, in TensorRT's own calibrators for what the plan is tuned for")
	flags.StringVar(&b.Cache, "calibration-cache", "",
		"file that keeps the measured ranges, as that of quantize; a table of TensorRT of any release is read too")
	flags.StringVar(&b.Method, "method", string(quantize.DefaultMethod),
		"how INT8 ranges are chosen: minmax, percentile, entropy or mse of what ONNX Runtime measures; "+TensorRTEntropy+" or "+TensorRTMinMax+
			" leave the choice to TensorRT's own calibrators, which lose more accuracy")
	flags.BoolVar(&b.QDQ, "qdq", false, "put Q/DQ nodes into the model for INT8 also where TensorRT has calibrators")
	flags.StringSliceVar(&b.Exclude, "exclude", nil,
		"layers that INT8 leaves in floating point beside a detector's last ones: names, patterns with * and ?, or operators")
	flags.Float64Var(&b.LayerLoss, "layer-loss", quantize.DefaultLayerLoss, layerLossHelp)
	flags.IntVar(&b.OptimizationLevel, "opt-level", -1, "effort of the builder, 0 to 5; -1 for the release's own")
	flags.IntVar(&b.DLA, "dla", -1, "build for this DLA core, with the GPU as fallback; -1 for the GPU alone")
	flags.IntVar(&b.GPU, "gpu", 0, "number of the GPU")
	flags.StringVar(&b.Library, "library", "", "TensorRT library or its directory, instead of searching")
	flags.StringArrayVar(&b.Plugins, "plugin", nil,
		"TensorRT plugin: a shared object with the operators of the model that TensorRT lacks; may be given several times")
	flags.StringVar(&b.TimingCache, "timing-cache", "", "file of kernel timings that makes later builds faster, instead of one in the cache")
	flags.BoolVar(&b.VersionCompatible, "version-compatible", false, "make a plan that newer releases of TensorRT run too")
	flags.BoolVar(&b.HardwareCompatible, "hardware-compatible", false, "make a plan that Ampere and all newer GPUs run")
	flags.BoolVar(&b.StronglyTyped, "strongly-typed", false, "take every type from the model, as TensorRT 11 always does")
	flags.StringVar(&b.Data, "data", "", "directory of images that the gate judges on, with labels if possible")
	b.Limits.Flags(flags, quantize.DefaultMatchRate)
	flags.StringVar(&b.ReferenceModel, "reference-model", "",
		"ONNX file in FP32 that the gate compares with, demo for the embedded one, instead of the model itself")
	flags.BoolVar(&b.Search, "search", false,
		"leave the layers out of INT8 that cost the most until the gate passes, else take Q/DQ nodes; "+
			"every step builds a plan and says what it takes")
}
