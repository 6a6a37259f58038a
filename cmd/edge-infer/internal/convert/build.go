package convert

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Build writes a TensorRT engine plan and checks its accuracy.
type Build struct {
	Model string // ONNX file; empty for the demo model
	ModelOptions
	INT8Options
	Precision          string   // auto, fp32, fp16 or int8
	Output             string   // plan file; empty for the cache
	Batch              string   // MIN,OPT,MAX or the maximum
	Shapes             []string // NAME=MIN,OPT,MAX each
	Workspace          string   // such as 1GiB; empty for TensorRT's default
	QDQ                bool     // Q/DQ nodes even if TensorRT has calibrators
	OptimizationLevel  int      // of the builder; -1 for TensorRT's default
	DLA                int      // DLA core; -1 for the GPU only
	GPU                int
	Library            string   // path of TensorRT; empty to search for it
	Plugins            []string // shared objects with the model's own operators
	TimingCache        string   // file of kernel timings; empty for one in the plan cache
	VersionCompatible  bool
	HardwareCompatible bool
	StronglyTyped      bool   // the model specifies every type
	ReferenceModel     string // reference of the gate; empty for the model itself

	Logger   *slog.Logger
	Progress progress.Reporter

	commandLine  *pflag.FlagSet        // the command line; nil without one
	buildOptions tensorrt.BuildOptions // from the fields, without the model; set by Check

	// Set by Run.
	version    tensorrt.Version
	source     *source
	files      []string // calibration images
	calibrated *ranges  // of the INT8 calibration; nil if a TensorRT cache was read
}

// Flags registers the options on a command line.
func (b *Build) Flags(flags *pflag.FlagSet) {
	b.commandLine = flags
	flags.StringVar(&b.Precision, "precision", string(engine.Auto), "auto, fp32, fp16 or int8")
	flags.StringVarP(&b.Output, "output", "o", "", "plan file to write, instead of the cache")
	flags.StringVar(&b.Batch, "batch", "1", "batch sizes MIN,OPT,MAX, or the maximum, for a model with a dynamic batch")
	flags.StringArrayVar(&b.Shapes, "shape", nil,
		"NAME=MIN,OPT,MAX of an input, like images=1x3x640x640,4x3x640x640,8x3x640x640; may be repeated")
	flags.StringVar(&b.Workspace, "workspace", "", "largest scratch memory of a layer, such as 1GiB")
	b.ModelOptions.flags(flags)
	b.INT8Options.flags(flags)
	flags.StringVar(&b.ReferenceModel, "reference-model", "", "FP32 ONNX file, or demo, for the gate; empty: the model itself")
	flags.BoolVar(&b.QDQ, "qdq", false, "insert Q/DQ nodes for INT8 even if TensorRT has calibrators")
	flags.IntVar(&b.OptimizationLevel, "opt-level", -1, "optimization level of the builder, 0 to 5; -1: TensorRT's default")
	flags.IntVar(&b.DLA, "dla", -1, "DLA core to build for, with the GPU as fallback; -1: GPU only")
	flags.IntVar(&b.GPU, "gpu", 0, "GPU number")
	flags.StringVar(&b.Library, "library", "", "path of TensorRT's shared library or its directory; empty: search for it")
	flags.StringArrayVar(&b.Plugins, "plugin", nil, "TensorRT plugin: a shared object with operators that TensorRT lacks; may be repeated")
	flags.StringVar(&b.TimingCache, "timing-cache", "", "file of kernel timings that makes later builds faster; empty: one in the plan cache")
	flags.BoolVar(&b.VersionCompatible, "version-compatible", false, "make a plan that newer versions of TensorRT run too")
	flags.BoolVar(&b.HardwareCompatible, "hardware-compatible", false, "make a plan that Ampere and all newer GPUs run")
	flags.BoolVar(&b.StronglyTyped, "strongly-typed", false, "take every type from the model, as TensorRT 11 always does")
}
