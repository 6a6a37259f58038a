package quantize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// Collector runs a model over samples and measures the ranges of its tensors. Open's runner preprocesses images as for inference, so the
// ranges are those of inference.
type Collector struct {
	// Model is the FP32 model, from Prepare.
	Model *onnx.Model
	// Tensors to measure: Plan.Tensors, or AllTensors for a calibration cache of TensorRT.
	Tensors []string
	// Open opens a model from its bytes, usually on ONNX Runtime.
	Open func(model []byte) (Runner, error)
	// Samples are the calibration samples.
	Samples Samples
	// Batch is the number of images per run, 1 if 0; more are faster for models with a dynamic batch. The ranges are the same.
	Batch int
	// Percentile in percent, DefaultPercentile if 0.
	Percentile float64
	// MaxMemory limits the bytes of the tensors kept per run, 512 MiB if 0. Larger models run several times over the samples.
	MaxMemory int64
	// Progress, if not nil, is called after each sample with the number of completed runs and their total.
	Progress func(done, total int)
}

// AllTensors lists the float32 inputs and node outputs of a model: the tensors that TensorRT's own calibrators measure.
func AllTensors(m *onnx.Model) []string {
	values := m.Infer()
	initializer := onnx.NewIndex(m.Proto.Graph).Initializer
	var names []string
	add := func(name string) {
		if name != "" && values[name].Type == onnx.TensorProto_FLOAT && initializer[name] == nil {
			names = append(names, name)
		}
	}
	for _, v := range m.Proto.Graph.Input {
		add(v.GetName())
	}
	for _, n := range m.Proto.Graph.Node {
		if n.GetOpType() == "Constant" {
			continue
		}
		for _, name := range n.Output {
			add(name)
		}
	}
	return names
}

// Run measures the tensors. It closes the runners that it opens.
func (c *Collector) Run(ctx context.Context) (*Cache, error) {
	data, err := c.Model.Bytes()
	if err != nil {
		return nil, err
	}
	hash, err := c.Samples.Hash()
	if err != nil {
		return nil, err
	}
	percentile := c.percentile()
	cache := &Cache{
		Version: cacheVersion, Model: hashBytes(data), Samples: hash, Count: c.Samples.Len(), Percentile: percentile,
		Ranges: make(Ranges, len(c.Tensors)),
	}
	groups := c.groups()
	for i, tensors := range groups {
		done := 0
		report := func() {
			if done++; c.Progress != nil {
				c.Progress(i*c.Samples.Len()+done, len(groups)*c.Samples.Len())
			}
		}
		histograms, skipped, err := c.measure(ctx, tensors, report)
		if err != nil {
			return nil, err
		}
		for name, h := range histograms {
			cache.Ranges[name] = h.Range(percentile)
		}
		cache.Skipped = skipped
	}
	return cache, nil
}

func (c *Collector) percentile() float64 {
	if c.Percentile == 0 {
		return DefaultPercentile
	}
	return c.Percentile
}

// RunCached returns the calibration cache at path if it fits the collector's model, samples, tensors and percentile; otherwise it measures
// and writes the file. An unreadable cache is an error; it is not overwritten.
func (c *Collector) RunCached(ctx context.Context, path string) (cache *Cache, reused bool, err error) {
	cache, err = ReadCache(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, false, err
	default:
		data, err := c.Model.Bytes()
		if err != nil {
			return nil, false, err
		}
		fits, err := cache.Fits(data, c.Samples, c.Tensors)
		if err != nil || fits && cache.Percentile == c.percentile() {
			return cache, fits, err
		}
	}
	cache, err = c.Run(ctx)
	if err != nil {
		return nil, false, err
	}
	return cache, false, cache.Save(path)
}

func hashBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// groups divides the tensors into groups that fit the memory; a tensor that does not fit alone is its own group.
func (c *Collector) groups() [][]string {
	budget := c.MaxMemory
	if budget == 0 {
		budget = 512 << 20
	}
	values := c.Model.Infer()
	var groups [][]string
	left := int64(-1)
	for _, name := range c.Tensors {
		size := int64(4)
		for _, d := range values[name].Shape {
			size *= max(d, 1)
		}
		if left < size {
			groups, left = append(groups, nil), budget
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], name)
		left -= size
	}
	return groups
}

// measure runs the model once over all samples with the tensors as outputs.
func (c *Collector) measure(ctx context.Context, tensors []string, report func()) (map[string]*Histogram, []string, error) {
	exposed, inputs := Expose(c.Model, tensors)
	data, err := exposed.Bytes()
	if err != nil {
		return nil, nil, err
	}
	runner, err := c.Open(data)
	if err != nil {
		return nil, nil, err
	}
	defer runner.Close()
	histograms := make(map[string]*Histogram, len(tensors))
	for _, name := range tensors {
		histograms[name] = NewHistogram()
	}
	if most := runner.Model().MaxBatch; c.Batch > max(most, 1) {
		return nil, nil, unsupported("calibrate", "batches of %d exceed the maximum batch of the model, %d",
			"omit the calibration batch", c.Batch, most)
	}
	b := batch{size: c.Batch}
	see := func(name string, out *engine.Tensor) error {
		if original, renamed := inputs[out.Name]; renamed {
			return addTo(histograms[original], out, name)
		}
		return addTo(histograms[out.Name], out, name)
	}
	skipped, err := Each(c.Samples, func(i int, s Sample) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
		defer report()
		result, err := b.add(runner, s)
		if err != nil || result == nil {
			return err
		}
		for k := range result.Outputs {
			if err := see(c.Samples.Name(i), &result.Outputs[k]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	result, err := b.rest(runner)
	if err != nil {
		return nil, nil, err
	}
	if result != nil {
		for k := range result.Outputs {
			if err := see("the last batch", &result.Outputs[k]); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, name := range tensors {
		if histograms[name].count == 0 {
			return nil, nil, unsupported("calibrate", "tensor %q is missing from the outputs",
				"the engine must return every output of the model", name)
		}
	}
	return histograms, skipped, nil
}

// addTo adds an output's values to its histogram. Outputs of the model that are not measured have none.
func addTo(h *Histogram, out *engine.Tensor, sample string) error {
	if h == nil {
		return nil
	}
	if len(out.Data) > 0 && out.Float32s() == nil {
		return unsupported("calibrate", "tensor %q has type %v", "use an FP32 model", out.Name, out.Type)
	}
	if err := h.Add(out.Float32s()); err != nil {
		return unsupported("calibrate", "tensor %q at %q: %v", "the model or its input is broken; run it in FP32 first", out.Name, sample, err)
	}
	return nil
}

// Expose returns a copy of the model with the named tensors as additional outputs. A graph input cannot be an output, so it passes through
// an Identity; inputs maps that output's name to the input's.
func Expose(m *onnx.Model, tensors []string) (exposed *onnx.Model, inputs map[string]string) {
	exposed, inputs = m.Clone(), make(map[string]string)
	g := exposed.Proto.Graph
	x := onnx.NewIndex(g)
	values := m.Infer()
	for _, name := range tensors {
		if x.Outputs[name] {
			continue
		}
		out := name
		if x.Producer[name] == nil {
			out = x.UniqueName(name + "_seen")
			inputs[out] = name
			g.Node = append(g.Node, onnx.NewNode("Identity", out, []string{name}, []string{out}))
		}
		g.Output = append(g.Output, onnx.NewValueInfo(out, onnx.TensorProto_FLOAT, values[name].Shape))
		x.Outputs[name] = true
	}
	return exposed, inputs
}
