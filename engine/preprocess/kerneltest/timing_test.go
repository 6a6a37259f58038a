package kerneltest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/cudatest"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// launches is how many steps one timed graph has, and rotation through how many images they go, so that no cache holds them.
const launches, rotation, replays = 100, 16, 20

// time measures one step: a graph of launches steps is replayed, each replay timed by events. It returns the median.
func (g *gpu) time(t *testing.T, step func(i int) error) time.Duration {
	t.Helper()
	graph, err := g.stream.Capture(func() error {
		for i := range launches {
			if err := step(i % rotation); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	defer func() { assert.NoError(t, graph.Close()) }()
	start, err := cudatest.NewEvent(g.Device, cudatest.Timing)
	require.NoError(t, err)
	defer start.Close()
	end, err := cudatest.NewEvent(g.Device, cudatest.Timing)
	require.NoError(t, err)
	defer end.Close()
	var times []time.Duration
	for i := range replays + 3 {
		require.NoError(t, start.Record(g.stream))
		require.NoError(t, graph.Launch(g.stream))
		require.NoError(t, end.Record(g.stream))
		require.NoError(t, end.Synchronize())
		elapsed, err := end.Since(start)
		require.NoError(t, err)
		if i >= 3 { // the first ones warm up
			times = append(times, elapsed/launches)
		}
	}
	slices.Sort(times)
	return times[len(times)/2]
}

func (g *gpu) device(t *testing.T, size int) uint64 {
	t.Helper()
	memory, err := g.Alloc(size)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, memory.Free()) })
	return memory.Address
}

// copyTime is what the device needs to read and write that many bytes together.
func (g *gpu) copyTime(t *testing.T, bytes int) time.Duration {
	t.Helper()
	var from, to [rotation]uint64
	for i := range rotation {
		from[i], to[i] = g.device(t, bytes/2), g.device(t, bytes/2)
	}
	return g.time(t, func(i int) error { return g.stream.Copy(to[i], from[i], bytes/2) })
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// The letterbox of a camera's image is to take at most 20 us and at most twice a copy of the same bytes on an H200 (device memory).
func TestLetterboxTime(t *testing.T) {
	fake.Hardware(t)
	g := open(t)
	t.Logf("%+v", g.Facts())
	const large = 1 << 30
	bandwidth := 2 * large / g.copyTime(t, 2*large).Seconds()
	t.Logf("device copy of 1 GiB: %.0f GB/s read and written", bandwidth/1e9)
	for _, test := range []struct {
		format        engine.PixelFormat
		width, height int
		element       engine.DataType
	}{
		{engine.BGR, 1920, 1080, engine.Float32},
		{engine.BGR, 1920, 1080, engine.Float16},
		{engine.BGRx, 1920, 1080, engine.Float32},
		{engine.NV12, 1920, 1080, engine.Float32},
		{engine.YUYV, 1920, 1080, engine.Float32},
		{engine.GRAY8, 1920, 1080, engine.Float32},
		{engine.BGR, 1280, 720, engine.Float32},
		{engine.NV12, 1280, 720, engine.Float32},
		{engine.BGR, 640, 480, engine.Float32},
		{engine.BGR, 3840, 2160, engine.Float32},
	} {
		in := &engine.ImageInput{Type: test.element, Channels: 3, Width: 640, Height: 640}
		im := engine.Image{Width: test.width, Height: test.height, Stride: test.format.RowBytes(test.width), Format: test.format}
		bytes := size(&im) + in.ImageBytes()
		device, mapped := g.images(t, &im, in)
		launch := func(arguments *[rotation]preprocess.LetterboxArguments) func(int) error {
			return g.launches(in, arguments)
		}
		fromDevice, fromHost, copied := g.time(t, launch(&device)), g.time(t, launch(&mapped)), g.copyTime(t, bytes)
		bound := float64(bytes) / bandwidth * 1e6
		t.Logf("%-5v %4dx%-4d -> 640 %v: device memory %6.2f us, mapped %6.2f us; copy of the %.1f MB %.2f us (ratio %.2f), at full bandwidth %.2f us (ratio %.2f)",
			test.format, test.width, test.height, test.element, microseconds(fromDevice), microseconds(fromHost), float64(bytes)/1e6,
			microseconds(copied), fromDevice.Seconds()/copied.Seconds(), bound, microseconds(fromDevice)/bound)
		if test.width == 1920 {
			assert.LessOrEqual(t, fromDevice, 20*time.Microsecond)
			assert.LessOrEqual(t, fromDevice.Seconds(), 2*copied.Seconds())
		}
	}
}

// images places random images in device memory and in mapped memory, each with an output of its own, and describes their launches.
func (g *gpu) images(t *testing.T, im *engine.Image, in *engine.ImageInput) (device, mapped [rotation]preprocess.LetterboxArguments) {
	t.Helper()
	for i := range rotation {
		output := g.device(t, in.ImageBytes())
		host := g.host(t, size(im))
		noise(host.Data, uint64(i))
		source := g.device(t, size(im))
		require.NoError(t, g.stream.Copy(source, host.Address, size(im)))
		device[i], _ = preprocess.NewLetterboxArguments(im, source, in, output)
		mapped[i], _ = preprocess.NewLetterboxArguments(im, host.Address, in, output)
	}
	return device, mapped
}

func (g *gpu) launches(in *engine.ImageInput, arguments *[rotation]preprocess.LetterboxArguments) func(int) error {
	return func(i int) error { return g.stream.Launch(g.imageKernel(in, &arguments[i])) }
}

// Antialiased images have no bar: a classifier's network takes far longer.
func TestAntialiasTime(t *testing.T) {
	fake.Hardware(t)
	g := open(t)
	for _, test := range []struct {
		preset        string
		side          int64
		format        engine.PixelFormat
		width, height int
	}{
		{"torchvision", 224, engine.BGR, 1920, 1080},
		{"torchvision", 224, engine.NV12, 1920, 1080},
		{"timm", 224, engine.BGR, 1920, 1080},
		{"torchvision", 224, engine.BGR, 640, 480},
		{"torchvision", 224, engine.BGR, 3840, 2160},
		{"rtdetr", 640, engine.BGR, 1920, 1080},
	} {
		inputs := []engine.TensorInfo{{Name: "x", Type: engine.Float32, Shape: []int64{1, 3, test.side, test.side}}}
		in, err := engine.FindImageInput(inputs, engine.Metadata{Preprocess: engine.Preprocess{Preset: test.preset}})
		require.NoError(t, err)
		im := engine.Image{Width: test.width, Height: test.height, Stride: test.format.RowBytes(test.width), Format: test.format}
		device, mapped := g.images(t, &im, in)
		t.Logf("%-11s %-5v %4dx%-4d -> %d: device memory %7.2f us, mapped %7.2f us",
			test.preset, test.format, test.width, test.height, test.side,
			microseconds(g.time(t, g.launches(in, &device))), microseconds(g.time(t, g.launches(in, &mapped))))
	}
}

func TestFilterTime(t *testing.T) {
	fake.Hardware(t)
	g := open(t)
	for _, test := range []struct {
		name string
		head head
	}{
		{"v8 8400x80", head{images: 1, boxes: 8400, classes: 80}},
		{"v8 8400x80 half", head{images: 1, boxes: 8400, classes: 80, half: true}},
		{"v8 8400x80 batch 8", head{images: 8, boxes: 8400, classes: 80}},
		{"v8 8400x5", head{images: 1, boxes: 8400, classes: 5}},
		{"v5 25200x80", head{images: 1, boxes: 25200, classes: 80, objectness: true}},
	} {
		h := test.head
		h.fill(1, 200.0/float64(h.boxes))
		data := h.bytes(0)
		const capacity = 4096
		var arguments [3][rotation]preprocess.FilterArguments
		var counts [3][rotation]uint64
		host := g.host(t, len(data))
		copy(host.Data, data)
		for i := range rotation {
			output := g.device(t, len(data))
			require.NoError(t, g.stream.Copy(output, host.Address, len(data)))
			bytes, countBytes := h.images*capacity*engine.CandidateFields*4, preprocess.CountBytes(h.images)
			deviceRows, deviceCounts := g.device(t, bytes), g.device(t, countBytes)
			mappedRows, mappedCounts := g.host(t, bytes).Address, g.host(t, countBytes).Address
			for k, list := range [][2]uint64{{deviceRows, deviceCounts}, {mappedRows, deviceCounts}, {mappedRows, mappedCounts}} {
				arguments[k][i], counts[k][i] = h.filter(t, []uint64{output}, list[0], list[1], capacity, 0.25), list[1]
			}
		}
		var times [3]float64
		for k := range arguments {
			times[k] = microseconds(g.time(t, func(i int) error {
				a := &arguments[k][i]
				if err := g.stream.Fill(counts[k][i], 0, 2*h.images); err != nil {
					return err
				}
				return g.stream.Launch(g.filterKernel(a, h.images))
			}))
		}
		reset := g.time(t, func(i int) error { return g.stream.Fill(counts[0][i], 0, 2*h.images) })
		t.Logf("%-20s reset and filter: list in device memory %6.2f us, rows mapped %6.2f us, rows and counts mapped %6.2f us; reset alone %.2f us; copy of the %.1f MB %.2f us",
			test.name, times[0], times[1], times[2], microseconds(reset), float64(len(data))/1e6, microseconds(g.copyTime(t, len(data))))
	}
}

// Kernels are compiled for the device when the module is opened; the driver keeps the result on disk. With CUDA_CACHE_DISABLE=1 this is the
// time without.
func TestCompileTime(t *testing.T) {
	fake.Hardware(t)
	device, err := cuda.Open(0)
	require.NoError(t, err)
	start := time.Now()
	module, err := device.NewModule(preprocess.PTX())
	require.NoError(t, err)
	t.Logf("%d bytes of PTX compiled or found in %v", len(preprocess.PTX()), time.Since(start))
	require.NoError(t, module.Close())
	require.NoError(t, device.Close())
}
