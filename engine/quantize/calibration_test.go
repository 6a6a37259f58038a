package quantize_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patches returns random images with coloured rectangles on noise.
type patches struct {
	count      int
	unreadable map[int]bool
}

func (p patches) Len() int              { return p.count }
func (p patches) Name(i int) string     { return fmt.Sprintf("patch %d", i) }
func (p patches) Hash() (string, error) { return fmt.Sprint("patches ", p.count), nil }

func (p patches) Load(i int) (quantize.Sample, error) {
	if p.unreadable[i] {
		return quantize.Sample{}, errors.New("unexpected end of JPEG")
	}
	const width, height = 96, 64
	random := rand.New(rand.NewPCG(uint64(i), 1))
	data := make([]byte, 3*width*height)
	for k := range data {
		data[k] = byte(random.IntN(60))
	}
	for range 4 {
		x, y, shade := random.IntN(width-20), random.IntN(height-20), random.IntN(190)
		for row := y; row < y+20; row++ {
			for k := 3 * (row*width + x); k < 3*(row*width+x+20); k++ {
				data[k] += byte(shade)
			}
		}
	}
	return quantize.Sample{Image: engine.Image{Data: data, Width: width, Height: height, Stride: 3 * width, Format: engine.BGR}}, nil
}

// heads runs a model over samples and concatenates the outputs of its head's convolutions, because the boxes of random weights hardly
// change.
func heads(t *testing.T, m *onnx.Model, samples quantize.Samples) (all []float32) {
	t.Helper()
	var names []string
	for _, n := range m.Proto.Graph.Node {
		for _, end := range []string{".2/Conv", "/2/Conv"} {
			if strings.HasSuffix(n.GetName(), end) && n.GetOpType() == "Conv" {
				names = append(names, n.Output[0])
			}
		}
	}
	require.Len(t, names, 6)
	m, _ = quantize.Expose(m, names)
	data, err := m.Bytes()
	require.NoError(t, err)
	e, err := open(data)
	require.NoError(t, err)
	defer e.Close()
	for i := range samples.Len() {
		s, err := samples.Load(i)
		require.NoError(t, err)
		result, err := e.Images(s.Image)
		require.NoError(t, err)
		for k := range names {
			all = append(all, result.Outputs[1+k].Float32s()...)
		}
	}
	return all
}

// noise returns the squared difference relative to the variation of the reference between samples: 1 would be an output that does not
// depend on the image.
func noise(samples int, reference, got []float32) float64 {
	each := len(reference) / samples
	lost, signal := 0.0, 0.0
	for k := range each {
		mean := 0.0
		for i := k; i < len(reference); i += each {
			mean += float64(reference[i]) / float64(samples)
		}
		for i := k; i < len(reference); i += each {
			lost += math.Pow(float64(got[i])-float64(reference[i]), 2)
			signal += math.Pow(float64(reference[i])-mean, 2)
		}
	}
	return lost / signal
}

// Networks of the published architectures can be calibrated with every method, load in ONNX Runtime and stay close to FP32.
func TestEveryMethodOnPublishedNetworks(t *testing.T) {
	for name, m := range map[string]*onnx.Model{
		"v8": testnet.YOLO{Size: 96, Wide: 8, Norms: true}.V8(), "v10": testnet.YOLO{Size: 64, Wide: 8}.V10(),
		"v11": testnet.YOLO{Size: 96, Wide: 8, Dynamic: true}.V11(),
	} {
		t.Run(name, func(t *testing.T) {
			prepared, p := plan(t, m, quantize.Options{QuantizeNarrow: true})
			assert.Zero(t, prepared.Operators()["BatchNormalization"])
			total := 0
			collector := quantize.Collector{
				Model: prepared, Tensors: p.Tensors, Open: open, Samples: patches{count: 8},
				Progress: func(done, of int) { total++; assert.Equal(t, 8, of); assert.Equal(t, total, done) },
			}
			cache, err := collector.Run(context.Background())
			require.NoError(t, err)
			assert.Equal(t, 8, total)
			assert.Len(t, cache.Ranges, len(p.Tensors))
			unseen := patches{count: 6}
			reference := heads(t, m, unseen)
			for _, method := range quantize.Methods() {
				p, err := quantize.NewPlan(prepared, quantize.Options{Method: method, QuantizeNarrow: true, StoreInt8: method == quantize.MSE})
				require.NoError(t, err)
				int8, err := p.Apply(cache.Ranges)
				require.NoError(t, err)
				lost := noise(6, reference, heads(t, int8, unseen))
				assert.Less(t, lost, 0.6, "%s", method)
				t.Logf("%s: noise of the head %.3f", method, lost)
			}
			// Useless ranges give a large error, so the bound above is meaningful.
			p, err = quantize.NewPlan(prepared, quantize.Options{QuantizeNarrow: true})
			require.NoError(t, err)
			int8, err := p.Apply(uniform(p, 0.02))
			require.NoError(t, err)
			assert.Greater(t, noise(6, reference, heads(t, int8, unseen)), 2.0)
		})
	}
}

func TestCollectorWithLittleMemory(t *testing.T) {
	prepared, p := plan(t, testnet.YOLO{Size: 64, Wide: 4}.V8(), quantize.Options{QuantizeNarrow: true})
	once := quantize.Collector{Model: prepared, Tensors: p.Tensors, Open: open, Samples: patches{count: 3}}
	want, err := once.Run(context.Background())
	require.NoError(t, err)
	runs := 0
	little := quantize.Collector{
		Model: prepared, Tensors: p.Tensors, Samples: patches{count: 3}, MaxMemory: 64 << 10,
		Open: func(model []byte) (quantize.Runner, error) {
			runs++
			return open(model)
		},
	}
	got, err := little.Run(context.Background())
	require.NoError(t, err)
	assert.Greater(t, runs, 2)
	assert.Equal(t, want, got)
}

func TestCollectorReusesItsCache(t *testing.T) {
	prepared, p := plan(t, testnet.YOLO{Size: 64, Wide: 4}.V8(), quantize.Options{QuantizeNarrow: true})
	path := filepath.Join(t.TempDir(), "calibration.json")
	collector := quantize.Collector{Model: prepared, Tensors: p.Tensors, Open: open, Samples: patches{count: 2}}
	run := func() (*quantize.Cache, bool) {
		cache, reused, err := collector.RunCached(context.Background(), path)
		require.NoError(t, err)
		return cache, reused
	}
	first, reused := run()
	assert.False(t, reused)
	second, reused := run()
	assert.True(t, reused)
	assert.Equal(t, first, second)
	collector.Samples = patches{count: 3}
	third, reused := run()
	assert.False(t, reused, "other images")
	assert.Equal(t, 3, third.Count)
	collector.Tensors = append(collector.Tensors, "/model.0/conv/Conv_output_0")
	_, reused = run()
	assert.False(t, reused, "one more tensor")
	collector.Model = prepared.Clone()
	collector.Model.SetMetadata("version", "2")
	_, reused = run()
	assert.False(t, reused, "another model")

	require.NoError(t, os.WriteFile(path, []byte("precious notes"), 0o600))
	_, _, err := collector.RunCached(context.Background(), path)
	assert.EqualError(t, err,
		path+": quantize calibration cache: it is not JSON (remove the file to calibrate again)")
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "precious notes", string(kept))
}

// Every float tensor can be measured, as TensorRT's calibration cache needs.
func TestAllTensorsForTensorRT(t *testing.T) {
	prepared, p := plan(t, testnet.YOLO{Size: 64, Wide: 4}.V11(), quantize.Options{Method: quantize.MinMax, QuantizeNarrow: true})
	tensors := quantize.AllTensors(prepared)
	for _, name := range p.Tensors {
		assert.Contains(t, tensors, name)
	}
	collector := quantize.Collector{Model: prepared, Tensors: tensors, Open: open, Samples: patches{count: 2}}
	cache, err := collector.Run(context.Background())
	require.NoError(t, err)
	text, err := cache.FormatTensorRT(100600, quantize.MinMax)
	require.NoError(t, err)
	assert.Equal(t, 1+len(tensors), bytes.Count(text, []byte("\n")))
}

func TestCollectorRefuses(t *testing.T) {
	prepared, p := plan(t, testnet.YOLO{Size: 64, Wide: 4}.V8(), quantize.Options{QuantizeNarrow: true})
	collector := quantize.Collector{Model: prepared, Tensors: p.Tensors, Open: open}
	run := func(s quantize.Samples) error {
		collector.Samples = s
		_, err := collector.Run(context.Background())
		return err
	}
	assert.EqualError(t, run(patches{}), "quantize samples: no samples (name a directory with images)")
	assert.EqualError(t, run(patches{count: 3, unreadable: map[int]bool{0: true, 2: true}}),
		`quantize samples: 2 of 3 samples cannot be read, the last one "patch 2": unexpected end of JPEG (remove or replace the unreadable files)`)

	collector.Samples = patches{count: 4, unreadable: map[int]bool{1: true}}
	cache, err := collector.Run(context.Background())
	require.NoError(t, err)
	assert.Equal(t, []string{"patch 1"}, cache.Skipped)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = collector.Run(ctx)
	assert.ErrorIs(t, err, context.Canceled)

	broken := prepared.Clone()
	for _, tensor := range broken.Proto.Graph.Initializer {
		if tensor.GetName() == "model.1.conv.bias" {
			values, err := tensor.Floats()
			require.NoError(t, err)
			values[0] /= float32(0 * values[1])
			tensor.SetFloats(values)
		}
	}
	collector.Model, collector.Samples = broken, patches{count: 1}
	_, err = collector.Run(context.Background())
	assert.ErrorContains(t, err, `quantize calibrate: tensor "/model.1/act/Mul_output_0" at "patch 0": value 0 is `)
	assert.ErrorContains(t, err, "(the model or its input is broken; run it in FP32 first)")
}

func TestChooseImages(t *testing.T) {
	dir := t.TempDir()
	_, err := quantize.ChooseImages(dir, 0, 1)
	assert.EqualError(t, err,
		fmt.Sprintf("quantize images: none in %q (give a directory with .jpg, .jpeg, .png, .bmp, .webp, .tif, .tiff, .ppm files)", dir))
	_, err = quantize.ChooseImages(filepath.Join(dir, "absent"), 0, 1)
	assert.ErrorContains(t, err, "list images: ")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "more"), 0o700))
	for i := range 20 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, []string{".", "more"}[i%2], fmt.Sprintf("%02d.JPG", i)), []byte{byte(i)}, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	all, err := quantize.ChooseImages(dir, 0, 1)
	require.NoError(t, err)
	assert.Len(t, all, 20)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	linked, err := quantize.ChooseImages(link, 0, 1)
	require.NoError(t, err)
	assert.Len(t, linked, 20)
	assert.Equal(t, link, filepath.Dir(linked[0]))
	five, err := quantize.ChooseImages(dir, 5, 1)
	require.NoError(t, err)
	again, err := quantize.ChooseImages(dir, 5, 1)
	require.NoError(t, err)
	other, err := quantize.ChooseImages(dir, 5, 2)
	require.NoError(t, err)
	assert.Len(t, five, 5)
	assert.Equal(t, five, again)
	assert.NotEqual(t, five, other)

	a, b := &quantize.Images{Files: five}, &quantize.Images{Files: all}
	hash, err := a.Hash()
	require.NoError(t, err)
	whole, err := b.Hash()
	require.NoError(t, err)
	assert.NotEqual(t, hash, whole)
	overlap, err := b.Overlap(a)
	require.NoError(t, err)
	assert.Equal(t, 5, overlap)
	require.NoError(t, os.WriteFile(five[0], []byte("changed"), 0o600))
	changed, err := a.Hash()
	require.NoError(t, err)
	assert.NotEqual(t, hash, changed)
}
