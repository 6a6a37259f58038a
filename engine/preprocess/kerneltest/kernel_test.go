// Package kerneltest checks the CUDA kernels against the CPU path. By default the kernels run as host code under a fake driver; with
// EDGE_INFER_TEST_GPU=1 they run on the machine's GPU, and the tests that need a real one run too. It is a package of its own so that its
// test binary needs no OpenCV and can be carried to a machine with a GPU:
//
//	go test -c -o kernels.test ./engine/preprocess/kerneltest && EDGE_INFER_TEST_GPU=1 ./kernels.test -test.v
package kerneltest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

const gpuEnvironment = "EDGE_INFER_TEST_GPU"

func TestMain(m *testing.M) {
	if os.Getenv(gpuEnvironment) != "" {
		os.Exit(m.Run())
	}
	folder, err := os.MkdirTemp("", "kernels")
	if err == nil {
		err = fakeGPU(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// fakeGPU compiles the kernels for the host, undefined behaviour a trap, and a driver that calls them.
func fakeGPU(folder string) error {
	driver, err := fake.Build(folder, 0)
	if err != nil {
		return err
	}
	kernels, err := fake.Compile(filepath.Join(folder, "kernels.so"), "-O2", "-std=c++17", "-Wall", "-Wextra", "-Werror",
		"-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-ffp-contract=off", "-I..", "-x", "c++", "-include", "../letterbox.cu", "../filter.cu", "-lm")
	if err != nil {
		return err
	}
	return cmp.Or(os.Setenv(cuda.LibraryEnvironment, driver), os.Setenv("FAKE_CUDA_KERNELS", kernels))
}

// gpu is a device with the kernels loaded.
type gpu struct {
	*cuda.Device
	stream            *cuda.Stream
	module            *cuda.Module
	letterbox, filter cuda.Function
}

func open(t testing.TB) *gpu {
	t.Helper()
	device, err := cuda.Open(0)
	require.NoError(t, err)
	g := &gpu{Device: device}
	g.stream, err = device.NewStream()
	require.NoError(t, err)
	g.module, err = device.NewModule(preprocess.PTX())
	require.NoError(t, err)
	g.letterbox, err = g.module.Function(preprocess.LetterboxKernel)
	require.NoError(t, err)
	g.filter, err = g.module.Function(preprocess.FilterKernel)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, g.module.Close())
		assert.NoError(t, g.stream.Close())
		assert.NoError(t, device.Close())
	})
	return g
}

func (g *gpu) host(t testing.TB, size int) *cuda.HostMemory {
	t.Helper()
	memory, err := g.AllocHost(size)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, memory.Free()) })
	return memory
}

func (g *gpu) letterboxKernel(a *preprocess.LetterboxArguments) *cuda.Kernel {
	grid, block := a.Grid()
	return &cuda.Kernel{Function: g.letterbox, Grid: grid, Block: block, Arguments: cuda.Bytes(a)}
}

func (g *gpu) filterKernel(a *preprocess.FilterArguments, pictures int) *cuda.Kernel {
	grid, block := a.Grid(pictures)
	return &cuda.Kernel{Function: g.filter, Grid: grid, Block: block, Arguments: cuda.Bytes(a)}
}

var formats = []engine.PixelFormat{engine.BGR, engine.BGRx, engine.NV12, engine.YUYV, engine.GRAY8}

// size is the memory of a picture up to its last byte.
func size(im *engine.Image) int {
	return im.Stride*(im.Format.Rows(im.Height)-1) + im.Format.RowBytes(im.Width)
}

// fits makes sides that the format allows.
func fits(format engine.PixelFormat, width, height int) (int, int) {
	if format == engine.NV12 {
		return (width + 1) &^ 1, (height + 1) &^ 1
	}
	if format == engine.YUYV {
		return (width + 1) &^ 1, height
	}
	return width, height
}

// noise fills memory with a picture's worth of random bytes; a seed gives the same again.
func noise(data []byte, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	for ; len(data) >= 8; data = data[8:] {
		binary.LittleEndian.PutUint64(data, random.Uint64())
	}
	for i := range data {
		data[i] = byte(random.Uint32())
	}
}

// levels reads the planes as levels of 0 to 255.
func levels(output []byte, in engine.PictureInput) []float64 {
	values := make([]float64, len(output)/in.Type.Size())
	for i := range values {
		if in.Type == engine.Float16 {
			values[i] = 255 * half(binary.LittleEndian.Uint16(output[2*i:]))
		} else {
			values[i] = 255 * float64(math.Float32frombits(binary.LittleEndian.Uint32(output[4*i:])))
		}
	}
	return values
}

func half(bits uint16) float64 {
	exponent, mantissa := int(bits>>10&31), float64(bits&1023)
	switch exponent {
	case 0:
		return math.Ldexp(mantissa, -24)
	case 31:
		return math.NaN()
	}
	return math.Ldexp(1024+mantissa, exponent-25)
}

// check letterboxes a picture that starts offset bytes into mapped memory on the GPU and on the CPU. It returns the largest difference in
// levels and how many elements differ at all.
func (g *gpu) check(t testing.TB, format engine.PixelFormat, width, height, padding, offset int, in engine.PictureInput) (worst float64, differ int) {
	t.Helper()
	width, height = fits(format, width, height)
	im := engine.Image{Width: width, Height: height, Stride: format.RowBytes(width) + padding, Format: format}
	source, err := g.AllocHost((offset + size(&im) + 3) &^ 3) // whole words, see arguments.h
	require.NoError(t, err)
	defer func() { assert.NoError(t, source.Free()) }()
	output, err := g.AllocHost(in.PictureBytes())
	require.NoError(t, err)
	defer func() { assert.NoError(t, output.Free()) }()
	noise(source.Data, uint64(width*height))
	for i := range output.Data {
		output.Data[i] = 0xff // NaN: an element left out shows
	}
	im.Data = source.Data[offset : offset+size(&im)]
	require.NoError(t, im.Check())

	arguments, _ := preprocess.NewLetterboxArguments(&im, source.Address+uint64(offset), in, output.Address)
	require.NoError(t, g.stream.Launch(g.letterboxKernel(&arguments)))
	require.NoError(t, g.stream.Synchronize())
	words := make([]uint64, (in.PictureBytes()+7)/8)
	want := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), in.PictureBytes())
	_, err = preprocess.NewLetterbox(in).Run(&im, want, preprocess.Geometry{})
	require.NoError(t, err)

	cpu, gpu := levels(want, in), levels(output.Data, in)
	for i := range cpu {
		difference := math.Abs(cpu[i] - gpu[i])
		if !(difference == 0) {
			differ++
		}
		if !(difference <= worst) {
			worst = difference
		}
	}
	return worst, differ
}

// oneLevel is 1 LSB with room for the rounding of binary16.
const oneLevel = 1 + 1.0/8

func TestLetterboxEqualsTheCPU(t *testing.T) {
	g := open(t)
	sizes := [][2]int{
		{1, 1},
		{2, 1},
		{1, 2},
		{2, 2},
		{3, 5},
		{7, 300},
		{300, 7},
		{64, 48},
		{63, 47},
		{127, 97},
		{128, 96},
		{129, 65},
		{192, 144},
		{255, 255},
		{320, 180},
		{321, 181},
		{401, 33},
	}
	inputs := []engine.PictureInput{
		{Type: engine.Float32, Channels: 3, Width: 64, Height: 48},
		{Type: engine.Float16, Channels: 3, Width: 96, Height: 64},
		{Type: engine.Float32, Channels: 1, Width: 65, Height: 33},
		{Type: engine.Float16, Channels: 1, Width: 130, Height: 130},
		{Type: engine.Float32, Channels: 3, Width: 1, Height: 1},
	}
	elements, differ := 0, 0
	for _, format := range formats {
		t.Run(format.String(), func(t *testing.T) {
			for _, side := range sizes {
				for _, in := range inputs {
					for _, layout := range [][2]int{{0, 0}, {1, 1}, {6, 2}, {5, 3}} { // row padding, offset of the first byte
						worst, count := g.check(t, format, side[0], side[1], layout[0], layout[1], in)
						require.LessOrEqual(t, worst, oneLevel, "%v to %dx%dx%d %v, padding %d, offset %d", side, in.Width, in.Height,
							in.Channels, in.Type, layout[0], layout[1])
						elements += in.Channels * in.Width * in.Height
						differ += count
					}
				}
			}
		})
	}
	t.Logf("%d of %d elements differ, by at most one level", differ, elements)
	assert.Less(t, float64(differ), 0.001*float64(elements))
}

func TestLetterboxOfCameraSizes(t *testing.T) {
	g := open(t)
	in := engine.PictureInput{Type: engine.Float32, Channels: 3, Width: 640, Height: 640}
	for _, format := range formats {
		for _, side := range [][2]int{{1920, 1080}, {1280, 720}, {640, 480}, {1366, 768}, {720, 1280}} {
			worst, differ := g.check(t, format, side[0], side[1], 0, 0, in)
			require.LessOrEqual(t, worst, oneLevel, "%v %v", format, side)
			assert.Less(t, differ, 1000, "%v %v", format, side)
		}
	}
}

// The kernel may read the words of four bytes that hold the picture's first and last byte and nothing else: closed pages lie around them.
func TestLetterboxStaysInsideThePicture(t *testing.T) {
	g := open(t)
	page := os.Getpagesize()
	const pages = 8
	area, err := syscall.Mmap(-1, 0, (pages+2)*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	require.NoError(t, syscall.Mprotect(area[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(area[(pages+1)*page:], syscall.PROT_NONE))
	inside := area[page : (pages+1)*page]
	source, err := g.Register(inside)
	require.NoError(t, err)
	in := engine.PictureInput{Type: engine.Float32, Channels: 3, Width: 48, Height: 40}
	output := g.host(t, in.PictureBytes())
	for _, format := range formats {
		for _, side := range [][2]int{{1, 1}, {2, 2}, {3, 3}, {5, 1}, {1, 5}, {61, 47}, {48, 40}} {
			width, height := fits(format, side[0], side[1])
			im := engine.Image{Width: width, Height: height, Stride: format.RowBytes(width), Format: format}
			for _, offset := range []int{0, len(inside) - size(&im)} { // the first byte first, the last byte last
				arguments, _ := preprocess.NewLetterboxArguments(&im, source.Address+uint64(offset), in, output.Address)
				require.NoError(t, g.stream.Launch(g.letterboxKernel(&arguments)))
				require.NoError(t, g.stream.Synchronize(), "%v %v", format, side)
			}
		}
	}
	require.NoError(t, source.Free())
	require.NoError(t, syscall.Munmap(area))
}

// head is a network output with its own reference: what postprocess' CPU scan keeps.
type head struct {
	pictures, anchors, classes int
	objectness, half           bool
	data                       []float32
}

func (h *head) fields() int {
	if h.objectness {
		return 5 + h.classes
	}
	return 4 + h.classes
}

// at is where a field is: rows of fields with objectness (YOLOv5), else columns (YOLOv8).
func (h *head) at(picture, anchor, field int) int {
	if h.objectness {
		return (picture*h.anchors+anchor)*h.fields() + field
	}
	return (picture*h.fields()+field)*h.anchors + anchor
}

// fill writes boxes of which a share scores high, and some garbage.
func (h *head) fill(seed uint64, share float64) {
	random := rand.New(rand.NewPCG(seed, 3))
	h.data = make([]float32, h.pictures*h.anchors*h.fields())
	first := h.fields() - h.classes
	garbage := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), -1, 2, 2e6}
	for picture := range h.pictures {
		for anchor := range h.anchors {
			for field := range 4 {
				h.data[h.at(picture, anchor, field)] = float32(random.IntN(640)) + 0.5
			}
			hot := random.Float64() < share
			for field := 4; field < h.fields(); field++ {
				score := float32(random.IntN(200)) / 1024
				if hot && (field < first || random.IntN(4) == 0) {
					score = float32(256+random.IntN(768)) / 1024 // few values, so that there are ties
				}
				h.data[h.at(picture, anchor, field)] = score
			}
			if random.IntN(50) == 0 {
				h.data[h.at(picture, anchor, random.IntN(h.fields()))] = garbage[random.IntN(len(garbage))]
			}
		}
	}
	if h.half {
		for i, v := range h.data {
			h.data[i] = float32(halfValue(toHalf(v)))
		}
	}
}

func (h *head) bytes() []byte {
	var out []byte
	for _, v := range h.data {
		if h.half {
			out = binary.LittleEndian.AppendUint16(out, toHalf(v))
		} else {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}

// toHalf truncates; exact for the values that come from it.
func toHalf(v float32) uint16 {
	bits := math.Float32bits(v)
	sign, exponent, mantissa := uint16(bits>>16&0x8000), int(bits>>23&255)-127+15, uint16(bits>>13&1023)
	switch {
	case v != v:
		return 0x7e00
	case exponent >= 31:
		return sign | 0x7c00
	case exponent <= 0:
		return sign
	}
	return sign | uint16(exponent)<<10 | mantissa
}

func halfValue(bits uint16) float64 {
	sign := 1 - 2*float64(bits>>15)
	if bits&0x7fff == 0x7c00 {
		return math.Inf(int(sign))
	}
	return sign * half(bits&0x7fff)
}

type row [engine.CandidateFields]float32

func (h *head) reference(picture int, confidence float32) []row {
	const maxScore, maxCoordinate = 1 + 1.0/64, 1e6
	var rows []row
	for anchor := range h.anchors {
		field := func(i int) float32 { return h.data[h.at(picture, anchor, i)] }
		objectness, first := float32(1), 4
		if h.objectness {
			objectness, first = field(4), 5
			if !(objectness >= confidence && objectness <= maxScore) {
				continue
			}
		}
		best, class := float32(0), -1
		for c := range h.classes {
			score := objectness * field(first+c)
			if score >= confidence && score <= maxScore && (class < 0 || score > best) {
				best, class = score, c
			}
		}
		x, y, width, height := field(0), field(1), field(2), field(3)
		inside := func(v, low float32) bool { return v > low && v < maxCoordinate }
		if class < 0 || !inside(width, 0) || !inside(height, 0) || !inside(x, -maxCoordinate) || !inside(y, -maxCoordinate) {
			continue
		}
		rows = append(rows, row{x - width/2, y - height/2, x + width/2, y + height/2, best, float32(class)})
	}
	return rows
}

func sorted(rows []row) []row {
	rows = append([]row{}, rows...)
	slices.SortFunc(rows, func(a, b row) int { return slices.Compare(a[:], b[:]) })
	return rows
}

// list runs the filter on the GPU and returns each picture's rows and count.
func (g *gpu) list(t testing.TB, h *head, capacity int, confidence float32) (rows [][]row, counts []int) {
	t.Helper()
	data := h.bytes()
	output := g.host(t, len(data))
	copy(output.Data, data)
	list := g.host(t, h.pictures*capacity*engine.CandidateFields*4)
	counters := g.host(t, 4*h.pictures)
	a := preprocess.FilterArguments{
		Output: output.Address, Rows: list.Address, Counts: counters.Address, PictureStride: int64(h.at(1, 0, 0)), AnchorStride: int64(h.at(0, 1, 0)),
		FieldStride: int64(h.at(0, 0, 1)), Anchors: int32(h.anchors), Classes: int32(h.classes), Capacity: int32(capacity), Confidence: confidence,
	}
	if h.objectness {
		a.Objectness = 1
	}
	if h.half {
		a.Half = 1
	}
	require.NoError(t, g.stream.Fill(counters.Address, 0, h.pictures))
	require.NoError(t, g.stream.Launch(g.filterKernel(&a, h.pictures)))
	require.NoError(t, g.stream.Synchronize())
	all := unsafe.Slice((*row)(unsafe.Pointer(&list.Data[0])), h.pictures*capacity)
	for picture := range h.pictures {
		count := int(binary.LittleEndian.Uint32(counters.Data[4*picture:]))
		counts = append(counts, count)
		rows = append(rows, slices.Clone(all[picture*capacity:picture*capacity+min(count, capacity)]))
	}
	return rows, counts
}

func TestFilterEqualsTheReference(t *testing.T) {
	g := open(t)
	for _, test := range []struct {
		name       string
		head       head
		share      float64
		confidence float32
	}{
		{"v8", head{pictures: 1, anchors: 8400, classes: 80}, 0.02, 0.25},
		{"v8 batch", head{pictures: 3, anchors: 525, classes: 20}, 0.1, 0.25},
		{"v8 half", head{pictures: 2, anchors: 525, classes: 80, half: true}, 0.1, 0.25},
		{"v8 one class", head{pictures: 1, anchors: 129, classes: 1}, 0.5, 0.25},
		{"v8 17 classes", head{pictures: 1, anchors: 300, classes: 17}, 0.5, 0.25},
		{"v8 everything", head{pictures: 1, anchors: 525, classes: 3}, 1, 0.001},
		{"v8 nothing", head{pictures: 1, anchors: 525, classes: 3}, 0, 0.25},
		{"v5", head{pictures: 1, anchors: 25200, classes: 80, objectness: true}, 0.01, 0.25},
		{"v5 batch half", head{pictures: 2, anchors: 315, classes: 5, objectness: true, half: true}, 0.3, 0.25},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.head.fill(1, test.share)
			rows, counts := g.list(t, &test.head, test.head.anchors, test.confidence)
			for picture := range test.head.pictures {
				want := test.head.reference(picture, test.confidence)
				require.Len(t, rows[picture], len(want))
				require.Equal(t, len(want), counts[picture])
				require.Equal(t, sorted(want), sorted(rows[picture]))
				if test.share > 0 {
					require.NotEmpty(t, want)
				}
			}
		})
	}
}

func TestFilterCountsWhatDoesNotFit(t *testing.T) {
	g := open(t)
	h := head{pictures: 2, anchors: 525, classes: 3}
	h.fill(2, 1)
	rows, counts := g.list(t, &h, 100, 0.25)
	for picture := range h.pictures {
		want := h.reference(picture, 0.25)
		require.Greater(t, len(want), 100)
		assert.Equal(t, len(want), counts[picture])
		require.Len(t, rows[picture], 100)
		assert.Subset(t, want, rows[picture])
	}
}

// TestGraph replays the whole frame, then gives it a picture of another size and format, as a camera change does.
func TestGraph(t *testing.T) {
	g := open(t)
	in := engine.PictureInput{Type: engine.Float32, Channels: 3, Width: 64, Height: 64}
	source, output := g.host(t, 256*256*4), g.host(t, in.PictureBytes())
	noise(source.Data, 5)
	h := head{pictures: 1, anchors: 256, classes: 4}
	h.fill(4, 0.2)
	data := h.bytes()
	network, list, counts := g.host(t, len(data)), g.host(t, 256*engine.CandidateFields*4), g.host(t, 4)
	copy(network.Data, data)
	filter := preprocess.FilterArguments{
		Output: network.Address, Rows: list.Address, Counts: counts.Address, AnchorStride: 1, FieldStride: 256, Anchors: 256, Classes: 4,
		Capacity: 256, Confidence: 0.25,
	}
	picture := func(format engine.PixelFormat, width, height int) (engine.Image, preprocess.LetterboxArguments) {
		im := engine.Image{Width: width, Height: height, Stride: format.RowBytes(width), Format: format}
		im.Data = source.Data[:size(&im)]
		arguments, _ := preprocess.NewLetterboxArguments(&im, source.Address, in, output.Address)
		return im, arguments
	}
	first, arguments := picture(engine.BGR, 100, 60)
	var node cuda.Node
	graph, err := g.stream.Capture(func() error {
		if err := g.stream.Launch(g.letterboxKernel(&arguments)); err != nil {
			return err
		}
		var err error
		if node, err = g.stream.Captured(); err != nil {
			return err
		}
		if err := g.stream.Fill(counts.Address, 0, 1); err != nil {
			return err
		}
		return g.stream.Launch(g.filterKernel(&filter, 1))
	})
	require.NoError(t, err)
	defer func() { assert.NoError(t, graph.Close()) }()
	letterbox := preprocess.NewLetterbox(in)
	verify := func(im engine.Image) {
		t.Helper()
		for range 3 {
			require.NoError(t, graph.Launch(g.stream))
			require.NoError(t, g.stream.Synchronize())
			assert.Equal(t, len(h.reference(0, 0.25)), int(binary.LittleEndian.Uint32(counts.Data)), "the counter starts at 0 in every replay")
		}
		words := make([]float32, in.PictureBytes()/4)
		want := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), in.PictureBytes())
		_, err := letterbox.Run(&im, want, preprocess.Geometry{})
		require.NoError(t, err)
		assert.InDeltaSlice(t, levels(want, in), levels(output.Data, in), oneLevel)
	}
	verify(first)
	second, arguments := picture(engine.NV12, 90, 200)
	require.NoError(t, graph.Replace(node, g.letterboxKernel(&arguments)))
	verify(second)
}
