package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// calibrator writes the calibration cache from which TensorRT up to 10 takes INT8 ranges.
type calibrator struct {
	files  []string
	cache  string // file of ranges; may be empty
	method quantize.Method
	// unquantized are the output tensors of layers that stay in floating point.
	unquantized []string
	dir         string // for the build's input files; removed by the caller
	// measure returns the ranges, and the output tensors of all layers that stay in floating point according to them.
	measure func(context.Context) (quantize.Ranges, []string, error)
}

// prepare uses a calibration cache of TensorRT if there is one. Otherwise ONNX Runtime measures the ranges.
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
	}
	ranges, unquantized, err := c.ranges(ctx, model, known)
	if err != nil {
		return err
	}
	o.Calibration.Unquantized = unquantized
	text, err := (&quantize.Cache{Ranges: ranges}).FormatTensorRT(version.Number, c.method)
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
