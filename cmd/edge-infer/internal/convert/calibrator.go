package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/preprocess"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// Values of --method for the algorithms of TensorRT's own calibrators.
const (
	TensorRTEntropy = "tensorrt-entropy"
	TensorRTMinMax  = "tensorrt-minmax"
)

// calibrator prepares INT8 calibration for TensorRT up to 10: a calibration cache if possible, otherwise image batches.
type calibrator struct {
	files  []string
	cache  string // file of ranges; may be empty
	method string // of package quantize, or one of TensorRT's own
	// unquantized are the output tensors of layers that stay in floating point.
	unquantized []string
	batch       int    // images per run; 0: the plan's optimum batch
	dir         string // for the build's input files; removed by the caller
	// measure returns the ranges, and the output tensors of all layers that stay in floating point according to them.
	measure  func(context.Context) (quantize.Ranges, []string, error)
	logger   *slog.Logger
	progress progress.Reporter
}

// usesTensorRT reports whether method is one of TensorRT's own algorithms.
func usesTensorRT(method string) bool { return method == TensorRTEntropy || method == TensorRTMinMax }

// prepare uses a calibration cache of TensorRT if there is one. Otherwise ONNX Runtime measures the ranges, unless the method is TensorRT's
// own or ONNX Runtime is missing.
func (c *calibrator) prepare(ctx context.Context, model *onnx.Model, o *tensorrt.BuildOptions, version tensorrt.Version) error {
	o.Calibration = tensorrt.Calibration{Unquantized: c.unquantized}
	known, err := c.readCache()
	switch {
	case err != nil:
		return err
	case bytes.HasPrefix(known, []byte("TRT-")):
		return c.useTable(o, withVersion(known, version.Number))
	case known == nil && len(c.files) == 0:
		return fmt.Errorf("calibration cache %s: no such file (give --images DIR to write it)", c.cache)
	case usesTensorRT(c.method) && known != nil:
		return fmt.Errorf("calibration cache %s holds ranges that ONNX Runtime measured, which --method %s does not use "+
			"(name another file, or another method)", c.cache, c.method)
	case usesTensorRT(c.method):
		o.Calibration.Cache = c.cache
		return c.useTensorRT(ctx, model, o, c.method == TensorRTMinMax)
	}
	ranges, unquantized, err := c.ranges(ctx, model, known)
	if errors.Is(err, engine.ErrUnavailable) {
		minmax := c.method != string(quantize.Entropy)
		c.logger.Warn("ONNX Runtime not available, using TensorRT's own calibrator, which may lose accuracy", "minmax",
			minmax, "error", err)
		return c.useTensorRT(ctx, model, o, minmax) // without a cache file, because later builds would take these ranges for good ones
	}
	if err != nil {
		return err
	}
	o.Calibration.Unquantized = unquantized
	text, err := (&quantize.Cache{Ranges: ranges}).FormatTensorRT(version.Number, quantize.Method(c.method))
	if err != nil {
		return err
	}
	return c.useTable(o, text)
}

// useTable writes table to a file for the build and selects the calibrator that its header names.
func (c *calibrator) useTable(o *tensorrt.BuildOptions, table []byte) error {
	head, _, _ := bytes.Cut(table, []byte("\n"))
	o.Calibration.Cache, o.Calibration.MinMax = filepath.Join(c.dir, "table"), bytes.HasSuffix(bytes.TrimSpace(head),
		[]byte("-MinMaxCalibration"))
	return atomicfile.Write(o.Calibration.Cache, table, 0o600)
}

// separate rewrites the build's model so that TensorRT can keep the excluded layers in floating point.
func separate(model *onnx.Model, o *tensorrt.BuildOptions) (err error) {
	if made, separated := quantize.SeparateActivations(model, o.Calibration.Unquantized); separated > 0 {
		o.Model, err = made.Bytes()
	}
	return err
}

// withVersion replaces the TensorRT version in a table's header, as in TRT-8601-MinMaxCalibration. All versions write the same lines, but
// TensorRT 10.6 rejects the header of another one.
func withVersion(table []byte, release int) []byte {
	_, rest, _ := bytes.Cut(bytes.TrimPrefix(table, []byte("TRT-")), []byte("-"))
	return fmt.Appendf(nil, "TRT-%d-%s", release, rest)
}

// readCache returns the content of the cache file, nil if there is none.
func (c *calibrator) readCache() ([]byte, error) {
	if c.cache == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("calibration cache: %w", err)
	}
	return data, nil
}

// ranges measures the ranges on the images, or reads them from the cache if it was measured on the same images. Without images the cache
// must fit the model.
func (c *calibrator) ranges(ctx context.Context, model *onnx.Model, known []byte) (ranges quantize.Ranges, unquantized []string,
	err error,
) {
	if len(c.files) > 0 {
		return c.measure(ctx)
	}
	cache, err := quantize.ParseCache(known)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.cache, err)
	}
	prepared, err := quantize.Prepare(model)
	if err != nil {
		return nil, nil, err
	}
	measured, err := prepared.Bytes()
	if err != nil {
		return nil, nil, err
	}
	if fits, err := cache.Fits(measured, nil, nil); err != nil || !fits {
		return nil, nil, errors.Join(err, fmt.Errorf("calibration cache %s was measured on another model (remove the file to calibrate again)",
			c.cache))
	}
	if fits, err := cache.Fits(measured, nil, quantize.AllTensors(prepared)); err != nil || !fits {
		return nil, nil, errors.Join(err,
			fmt.Errorf("calibration cache %s has only the ranges that Q/DQ nodes need (give --images DIR to measure all)", c.cache))
	}
	return cache.Ranges, c.unquantized, nil
}

// useTensorRT lets TensorRT calibrate on batches of the images in the optimum shape.
func (c *calibrator) useTensorRT(ctx context.Context, model *onnx.Model, o *tensorrt.BuildOptions, minmax bool) (err error) {
	o.Calibration.MinMax = minmax
	o.Calibration.Hash, err = (&quantize.Images{Files: c.files}).Hash()
	if err != nil {
		return err
	}
	o.Calibration.Batches = filepath.Join(c.dir, "calibration")
	return c.write(ctx, model, o)
}

// write writes the images as network inputs, preprocessed exactly as for inference.
func (c *calibrator) write(ctx context.Context, model *onnx.Model, o *tensorrt.BuildOptions) error {
	input, name, err := c.input(model, o)
	if err != nil {
		return err
	}
	batches := len(c.files) / input.Batch
	if batches == 0 {
		return fmt.Errorf("%d calibration images do not fill one batch of %d (add images, or lower --calibration-batch)", len(c.files),
			input.Batch)
	}
	var reader media.Reader
	defer reader.Close()
	step := c.progress.Begin("calibration images letterboxed")
	defer step.Close()
	letterbox := preprocess.NewLetterbox(input)
	done, total := 0, batches*input.Batch
	return tensorrt.WriteCalibration(o.Calibration.Batches,
		[]tensorrt.CalibrationInput{{Name: name, Bytes: input.Batch * input.ImageBytes()}}, input.Batch,
		func(batch [][]byte) error {
			if done == total {
				return io.EOF
			}
			for i := range input.Batch {
				if err := ctx.Err(); err != nil {
					return err
				}
				img, err := reader.Read(c.files[done])
				if err != nil {
					return err
				}
				if _, err := letterbox.Run(&img, batch[0][i*input.ImageBytes():(i+1)*input.ImageBytes()], preprocess.Geometry{}); err != nil {
					return fmt.Errorf("%s: %w", c.files[done], err)
				}
				done++
				step.Count(done, total)
			}
			return nil
		})
}

// input returns the image input in the plan's optimum shape, which TensorRT calibrates with, and with the calibration batch.
func (c *calibrator) input(model *onnx.Model, o *tensorrt.BuildOptions) (*engine.ImageInput, string, error) {
	inputs, err := model.Inputs()
	if err != nil {
		return nil, "", err
	}
	if len(inputs) == 1 {
		for i := range o.Shapes {
			if o.Shapes[i].Name == inputs[0].Name {
				inputs[0].Shape = o.Shapes[i].Opt
			}
		}
	}
	metadata := o.Metadata
	if o.Width > 0 && o.Height > 0 {
		metadata.Width, metadata.Height = o.Width, o.Height
	}
	input, err := engine.FindImageInput(inputs, metadata)
	if err != nil {
		return nil, "", fmt.Errorf("int8 calibration is for models that take images: %w "+
			"(give --calibration-cache with a table of ranges, or a model with Q/DQ nodes)", err)
	}
	switch {
	case input.Batch > 0 && c.batch > 0 && c.batch != input.Batch:
		return input, "", fmt.Errorf("--calibration-batch %d: the model or --shape fixes the batch to %d (omit it)", c.batch, input.Batch)
	case c.batch > 0:
		input.Batch = c.batch
	case input.Batch == 0:
		input.Batch = max(o.Batch.Opt, o.Batch.Min, 1)
	}
	return input, inputs[0].Name, nil
}
