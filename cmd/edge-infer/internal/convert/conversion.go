package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// conversion converts a model to INT8 or FP16.
type conversion struct {
	name        string          // of the model
	method      quantize.Method // how INT8 ranges are chosen
	percentile  float64
	cache       string   // file of measured ranges; empty for none
	exclude     []string // layers that stay in floating point
	int8Weights bool     // store weights as INT8
	target      quantize.Target
	layerLoss   float64 // largest relative error of the head's outputs that one INT8 layer may cause; 0: no limit
	measureAll  bool    // measure the sensitivity of all layers even without a limit
	batch       int     // calibration images per run
	progress    progress.Reporter

	sensitive []string // layers over the limit; set by calibrate
}

// Calibration describes the source of the ranges.
type Calibration struct {
	Images  int      `json:"images"`
	Skipped []string `json:"skipped,omitempty"`
	Cache   string   `json:"cache,omitempty"`
	Reused  bool     `json:"reused"`
}

// options returns the INT8 options for package quantize.
func (c *conversion) options() quantize.Options {
	return quantize.Options{
		Target: c.target, Method: c.method, Exclude: c.exclude, Sensitive: c.sensitive, StoreInt8: c.int8Weights, ReduceRange: !hasVNNI(),
	}
}

// open returns a function that opens models on the CPU with the given maximum batch.
func (c *conversion) open(batch int) func(model []byte) (quantize.Runner, error) {
	return func(model []byte) (quantize.Runner, error) {
		e, err := accuracy.OnCPU(c.name, model, batch)
		if err != nil {
			return nil, err
		}
		return predict.WrapRaw(e), nil
	}
}

// measure measures the ranges of tensors on the images in files. Without files it reads them from the cache.
func (c *conversion) measure(ctx context.Context, model *onnx.Model, tensors, files []string) (quantize.Ranges, *Calibration, error) {
	if len(files) == 0 {
		return c.readRanges(model, tensors)
	}
	var reader media.Reader
	defer reader.Close()
	step := c.progress.Begin("calibration runs")
	defer step.Close()
	collector := quantize.Collector{
		Model: model, Tensors: tensors, Samples: &quantize.Images{Files: files, Decode: reader.Read}, Batch: c.batch,
		Open: c.open(c.batch), Percentile: c.percentile, Progress: step.Count,
	}
	calibration := &Calibration{Cache: c.cache}
	var cache *quantize.Cache
	var err error
	if c.cache == "" {
		cache, err = collector.Run(ctx)
	} else {
		cache, calibration.Reused, err = collector.RunCached(ctx, c.cache)
	}
	if err != nil {
		return nil, nil, err
	}
	calibration.Images, calibration.Skipped = cache.Count, cache.Skipped
	return cache.Ranges, calibration, nil
}

// readRanges reads the ranges of tensors from the cache.
func (c *conversion) readRanges(model *onnx.Model, tensors []string) (quantize.Ranges, *Calibration, error) {
	cache, err := quantize.ReadCache(c.cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("calibration cache %s: no such file (give --images DIR to write it)", c.cache)
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := model.Bytes()
	if err != nil {
		return nil, nil, err
	}
	fits, err := cache.Fits(data, nil, tensors)
	if err != nil {
		return nil, nil, err
	}
	if !fits || c.method == quantize.Percentile && cache.Percentile != c.percentile {
		return nil, nil, fmt.Errorf("calibration cache %s is of another model, other layers or another percentile "+
			"(give --images DIR to measure again)", c.cache)
	}
	return cache.Ranges, &Calibration{Cache: c.cache, Reused: true, Images: cache.Count, Skipped: cache.Skipped}, nil
}

// half converts the model to FP16. With calibration images, tensors that exceed the range of float16 stay in float32.
func (c *conversion) half(
	ctx context.Context, model *onnx.Model, files []string,
) (made *onnx.Model, report *quantize.FP16Report, calibration *Calibration, err error) {
	options := quantize.FP16Options{Exclude: c.exclude}
	if len(files) > 0 {
		options.Ranges, calibration, err = c.measure(ctx, model, quantize.AllTensors(model), files)
		if err != nil {
			return nil, nil, nil, err
		}
	}
	made = model.Clone()
	report, err = quantize.ConvertFP16(made, options)
	return made, report, calibration, err
}

// ranges is a model prepared for INT8 with the measured ranges.
type ranges struct {
	prepared    *onnx.Model
	options     quantize.Options // of the plan
	plan        *quantize.Plan
	ranges      quantize.Ranges
	calibration *Calibration
	sensitivity []quantize.LayerError // worst first; nil if not measured
}

// calibrate plans the quantization of a model and measures the ranges: of every tensor for a calibration cache of TensorRT, whose
// calibrators run layers in floating point or fail if one of their tensors has no range; otherwise only of tensors with Q/DQ nodes.
func (c *conversion) calibrate(ctx context.Context, model *onnx.Model, files []string, table bool) (*ranges, error) {
	prepared, err := quantize.Prepare(model)
	if err != nil {
		return nil, err
	}
	plan, err := quantize.NewPlan(prepared, c.options())
	if err != nil {
		return nil, err
	}
	tensors := plan.Tensors
	if table {
		tensors = quantize.AllTensors(prepared)
	}
	measured, calibration, err := c.measure(ctx, prepared, tensors, files)
	if err != nil {
		return nil, err
	}
	known := &ranges{prepared: prepared, options: c.options(), plan: plan, ranges: measured, calibration: calibration}
	if (c.layerLoss > 0 || c.measureAll) && len(files) > 0 {
		err = c.findSensitive(ctx, known, files)
	}
	return known, err
}

// findSensitive measures the sensitivity of each layer and excludes the layers over the limit from the plan.
func (c *conversion) findSensitive(ctx context.Context, known *ranges, files []string) (err error) {
	var reader media.Reader
	defer reader.Close()
	step := c.progress.Begin("layers measured")
	defer step.Close()
	done, total := 0, known.plan.Count()
	search := quantize.Search{
		Model: known.prepared, Ranges: known.ranges, Options: c.options(),
		Open:    c.open(1),
		Samples: &quantize.Images{Files: files[:min(sensitivityImages, len(files))], Decode: reader.Read},
		Progress: func(string) {
			step.Count(min(done, total), total)
			done++
		},
	}
	limit := c.layerLoss
	if limit == 0 {
		limit = math.Inf(1)
	}
	known.sensitivity, err = search.SensitiveLayers(ctx, limit)
	if err != nil {
		return err
	}
	for _, layer := range known.sensitivity {
		if layer.Excluded {
			c.sensitive = append(c.sensitive, layer.Name)
		}
	}
	known.options = c.options()
	known.plan, err = quantize.NewPlan(known.prepared, known.options)
	return err
}
