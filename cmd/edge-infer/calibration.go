package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/preprocess"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// calibration gives the calibrators of TensorRT up to 10 what they need.
type calibration struct {
	files  []string
	cache  string // table of ranges; may be empty
	method quantize.Method
	// unquantized are the results of layers that stay in floating point.
	unquantized []string
	batch       int    // pictures that run at once, 0 for what the plan is tuned for
	folder      string // for what the build reads, removed by its owner
	stderr      io.Writer
}

// prepare uses the cache when it exists, whoever wrote it, and otherwise writes batches of the pictures for the optimal shape.
func (c *calibration) prepare(ctx context.Context, model *onnx.Model, o *tensorrt.BuildOptions, version tensorrt.Version) error {
	o.Calibration = tensorrt.Calibration{Cache: c.cache, MinMax: c.method == quantize.MinMax, Unquantized: c.unquantized}
	known, err := c.table(model, o, version)
	if known || err != nil {
		return err
	}
	if len(c.files) == 0 {
		return fmt.Errorf("calibration cache %s: no such file (give --calibration DIR to write it)", c.cache)
	}
	if o.Calibration.Hash, err = (&quantize.Pictures{Files: c.files}).Hash(); err != nil {
		return err
	}
	o.Calibration.Batches = filepath.Join(c.folder, "calibration")
	return c.write(ctx, model, o)
}

// table reports whether the cache exists, and translates what quantize wrote.
func (c *calibration) table(model *onnx.Model, o *tensorrt.BuildOptions, version tensorrt.Version) (bool, error) {
	if c.cache == "" {
		return false, nil
	}
	data, err := os.ReadFile(c.cache)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("calibration cache: %w", err)
	}
	if bytes.HasPrefix(data, []byte("TRT-")) { // TensorRT's own
		return true, nil
	}
	ranges, err := quantize.ParseCache(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", c.cache, err)
	}
	prepared, err := quantize.Prepare(model)
	if err != nil {
		return false, err
	}
	measured, err := prepared.Bytes()
	if err != nil {
		return false, err
	}
	if fits, err := ranges.Fits(measured, nil, nil); err != nil || !fits {
		return false, errors.Join(err, fmt.Errorf("calibration cache %s was measured on another model (remove the file to calibrate again)", c.cache))
	}
	text, err := ranges.TensorRT(version.Number, c.method)
	if err != nil {
		return false, err
	}
	o.Calibration.Cache = filepath.Join(c.folder, "table")
	return true, os.WriteFile(o.Calibration.Cache, text, 0o600)
}

// write letterboxes the pictures exactly as in service.
func (c *calibration) write(ctx context.Context, model *onnx.Model, o *tensorrt.BuildOptions) error {
	input, name, err := c.input(model, o)
	if err != nil {
		return err
	}
	batches := len(c.files) / input.Batch
	if batches == 0 {
		return fmt.Errorf("%d calibration pictures do not fill one batch of %d (add pictures, or lower --calibration-batch)", len(c.files), input.Batch)
	}
	var reader accuracy.Reader
	defer reader.Close()
	bar := report.NewProgress(c.stderr, "calibration pictures letterboxed")
	defer bar.Close()
	letterbox := preprocess.NewLetterbox(input)
	done, total := 0, batches*input.Batch
	return tensorrt.WriteCalibration(o.Calibration.Batches, []tensorrt.CalibrationInput{{Name: name, Bytes: input.Batch * input.PictureBytes()}}, input.Batch,
		func(batch [][]byte) error {
			if done == total {
				return io.EOF
			}
			for i := range input.Batch {
				if err := ctx.Err(); err != nil {
					return err
				}
				picture, err := reader.Read(c.files[done])
				if err != nil {
					return err
				}
				if _, err := letterbox.Run(&picture, batch[0][i*input.PictureBytes():(i+1)*input.PictureBytes()], preprocess.Geometry{}); err != nil {
					return fmt.Errorf("%s: %w", c.files[done], err)
				}
				done++
				bar.Update(done, total)
			}
			return nil
		})
}

// input is the picture input as the plan is tuned for it: TensorRT calibrates at that shape, with the batch that is asked for.
func (c *calibration) input(model *onnx.Model, o *tensorrt.BuildOptions) (engine.PictureInput, string, error) {
	inputs, err := model.Inputs()
	if err != nil {
		return engine.PictureInput{}, "", err
	}
	if len(inputs) == 1 {
		for i := range o.Shapes {
			if o.Shapes[i].Name == inputs[0].Name {
				inputs[0].Shape = o.Shapes[i].Opt
			}
		}
	}
	input, ok := engine.FindPictureInput(inputs, o.Metadata)
	if !ok {
		return input, "", errors.New("int8 calibration is for models with one picture input (give --calibration-cache with a table of ranges, or a model with Q/DQ nodes)")
	}
	switch {
	case input.Batch > 0 && c.batch > 0 && c.batch != input.Batch:
		return input, "", fmt.Errorf("--calibration-batch %d: the model or --shape fixes the batch to %d (leave it away)", c.batch, input.Batch)
	case c.batch > 0:
		input.Batch = c.batch
	case input.Batch == 0:
		input.Batch = max(o.Batch.Opt, o.Batch.Min, 1)
	}
	return input, inputs[0].Name, nil
}
