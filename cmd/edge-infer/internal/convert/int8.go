package convert

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// INT8Options are the options of INT8 calibration and of the accuracy gate that build and quantize share.
type INT8Options struct {
	Images           string   // directory of calibration images, subdirectories included
	Count            int      // calibration images; 0: defaultCount
	Seed             uint64   // selects the calibration images
	CalibrationBatch int      // calibration images per run; 0: 1
	Cache            string   // file of measured ranges; empty for none
	Method           string   // how INT8 ranges are chosen
	Percentile       float64  // of method percentile, in percent
	Exclude          []string // layers that stay in floating point
	LayerLoss        float64  // largest relative error of the head's outputs that one INT8 layer may cause; 0: no limit
	Search           bool     // exclude layers until the gate passes
	Data             string   // directory of images for the gate
	Limits           accuracy.Limits
}

// flags registers the options.
func (o *INT8Options) flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Images, "images", "", "directory of calibration images for INT8, subdirectories included")
	flags.IntVar(&o.Count, "count", 0, fmt.Sprintf("number of calibration images, drawn with --seed; 0: at most %d", defaultCount))
	flags.Uint64Var(&o.Seed, "seed", 1, "seed that selects the calibration images")
	flags.IntVar(&o.CalibrationBatch, "calibration-batch", 0, "calibration images per run, for a model with a dynamic batch; 0: 1")
	flags.StringVar(&o.Cache, "calibration-cache", "",
		"file of measured ranges, read if it exists and written otherwise; build also reads calibration caches of TensorRT")
	flags.StringVar(&o.Method, "method", string(quantize.DefaultMethod), "calibration method: minmax, percentile, entropy or mse")
	flags.Float64Var(&o.Percentile, "percentile", quantize.DefaultPercentile,
		"percentage of an activation's values inside its range, for --method percentile")
	flags.StringSliceVar(&o.Exclude, "exclude", nil,
		"layers that stay in floating point in addition to a detector's last ones: names, patterns with * and ?, or operators")
	flags.Float64Var(&o.LayerLoss, "layer-loss", quantize.DefaultLayerLoss,
		"largest relative error of the head's outputs that one INT8 layer may cause; others stay in floating point; 0: no limit")
	flags.StringVar(&o.Data, "data", "", "directory of images for the accuracy gate, with labels if possible")
	o.Limits.Flags(flags, quantize.DefaultMatchRate)
	flags.BoolVar(&o.Search, "search", false, "exclude the layers that cost the most accuracy until the gate passes")
}

// check validates the options by themselves.
func (o *INT8Options) check() error {
	switch {
	case !slices.Contains(quantize.Methods(), quantize.Method(o.Method)):
		return config.Usagef("--method %q must be one of %v", o.Method, quantize.Methods())
	case !(o.Percentile > 50 && o.Percentile <= 100):
		return config.Usagef("--percentile %v must be over 50 and at most 100", o.Percentile)
	case o.Count < 0:
		return config.Usagef("--count must not be negative")
	case o.CalibrationBatch < 0:
		return config.Usagef("--calibration-batch must not be negative")
	case !(o.LayerLoss >= 0):
		return config.Usagef("--layer-loss %v must not be negative", o.LayerLoss)
	}
	return nil
}

// conversion returns the conversion of the named model with these options.
func (o *INT8Options) conversion(name string, reporter progress.Reporter) *conversion {
	return &conversion{
		name: name, method: quantize.Method(o.Method), percentile: o.Percentile, cache: o.Cache, exclude: o.Exclude,
		layerLoss: o.LayerLoss, batch: max(o.CalibrationBatch, 1), progress: reporter,
	}
}

// openGate opens the accuracy gate on held-out images and runs the reference on them. The caller closes it.
func (o *INT8Options) openGate(
	ctx context.Context, reference *source, layout string, images []string, dataset *evaluate.Dataset, reporter progress.Reporter,
) (*accuracy.Gate, error) {
	gate := accuracy.NewGate(images, o.Limits, reporter)
	gate.Layout = head.Layout(layout)
	if err := gate.Refer(ctx, reference.Options, dataset); err != nil {
		gate.Close()
		return nil, err
	}
	return gate, nil
}
