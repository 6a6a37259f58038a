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
	"github.com/edge-infer/edge-infer/engine/cuda/cudatest"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

func TestMain(m *testing.M) {
	if os.Getenv(fake.GPUEnvironment) != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "kernels")
	if err == nil {
		err = fakeGPU(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// fakeGPU compiles the kernels for the host, undefined behaviour a trap, and a driver that calls them.
func fakeGPU(dir string) error {
	driver, err := fake.Build(dir, 0)
	if err != nil {
		return err
	}
	kernels, err := fake.Compile(filepath.Join(dir, "kernels.so"), "-O2", "-std=c++17", "-Wall", "-Wextra", "-Werror",
		"-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-ffp-contract=off", "-I..", "-x", "c++", "../kernels.cu", "-lm")
	if err != nil {
		return err
	}
	return cmp.Or(os.Setenv(cuda.LibraryEnvironment, driver), os.Setenv("FAKE_CUDA_KERNELS", kernels))
}

// gpu is a device with the kernels loaded.
type gpu struct {
	*cuda.Device
	stream               *cudatest.Stream
	module               *cuda.Module
	letterbox, antialias cuda.Function
	filter               cuda.Function
}

func open(t testing.TB) *gpu {
	t.Helper()
	device, err := cuda.Open(0)
	require.NoError(t, err)
	g := &gpu{Device: device}
	g.stream, err = cudatest.NewStream(device)
	require.NoError(t, err)
	g.module, err = device.NewModule(preprocess.PTX())
	require.NoError(t, err)
	g.letterbox, err = g.module.Function(preprocess.LetterboxKernel)
	require.NoError(t, err)
	g.antialias, err = g.module.Function(preprocess.AntialiasKernel)
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

// imageKernel is the launch of the kernel that the input needs.
func (g *gpu) imageKernel(in *engine.ImageInput, a *preprocess.LetterboxArguments) *cuda.Kernel {
	grid, block := a.Grid()
	function := g.letterbox
	if preprocess.ImageKernel(in) == preprocess.AntialiasKernel {
		function = g.antialias
	}
	return &cuda.Kernel{Function: function, Grid: grid, Block: block, Arguments: cuda.Bytes(a)}
}

func (g *gpu) filterKernel(a *preprocess.FilterArguments, images int) *cuda.Kernel {
	grid, block := a.Grid(images)
	return &cuda.Kernel{Function: g.filter, Grid: grid, Block: block, Arguments: cuda.Bytes(a)}
}

var formats = []engine.PixelFormat{engine.BGR, engine.BGRx, engine.NV12, engine.YUYV, engine.GRAY8}

// size is the memory of an image up to its last byte.
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

// noise fills memory with an image's worth of random bytes; a seed gives the same again.
func noise(data []byte, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	for ; len(data) >= 8; data = data[8:] {
		binary.LittleEndian.PutUint64(data, random.Uint64())
	}
	for i := range data {
		data[i] = byte(random.Uint32())
	}
}

// levels reads the elements as levels of 0 to 255, of inputs whose channels are scaled alike.
func levels(output []byte, in *engine.ImageInput) []float64 {
	values := make([]float64, len(output)/in.Type.Size())
	scale, bias := in.Affine()
	for i := range values {
		v := 0.0
		switch in.Type {
		case engine.Float16:
			v = half(binary.LittleEndian.Uint16(output[2*i:]))
		case engine.Uint8:
			v = float64(output[i])
		default:
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(output[4*i:])))
		}
		values[i] = (v - float64(bias[0])) / float64(scale[0])
	}
	return values
}

func half(bits uint16) float64 {
	sign, exponent, mantissa := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(mantissa, -24)
	case 31:
		return math.NaN()
	}
	return sign * math.Ldexp(1024+mantissa, exponent-25)
}

// both makes the input of an image that starts offset bytes into mapped memory, on the CPU and on the GPU.
func (g *gpu) both(t testing.TB, format engine.PixelFormat, width, height, padding, offset int, in *engine.ImageInput) (cpu, gpu []byte) {
	t.Helper()
	width, height = fits(format, width, height)
	im := engine.Image{Width: width, Height: height, Stride: format.RowBytes(width) + padding, Format: format}
	source, err := g.AllocHost((offset + size(&im) + 3) &^ 3) // whole words, see arguments.h
	require.NoError(t, err)
	defer func() { assert.NoError(t, source.Free()) }()
	output, err := g.AllocHost(in.ImageBytes())
	require.NoError(t, err)
	defer func() { assert.NoError(t, output.Free()) }()
	noise(source.Data, uint64(width*height))
	for i := range output.Data {
		output.Data[i] = 0xff // NaN: an element left out shows
	}
	im.Data = source.Data[offset : offset+size(&im)]
	require.NoError(t, im.Check())

	arguments, _ := preprocess.NewLetterboxArguments(&im, source.Address+uint64(offset), in, output.Address)
	require.NoError(t, g.stream.Launch(g.imageKernel(in, &arguments)))
	require.NoError(t, g.stream.Synchronize())
	words := make([]uint64, (in.ImageBytes()+7)/8)
	cpu = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), in.ImageBytes())
	_, err = preprocess.NewLetterbox(in).Run(&im, cpu, preprocess.Geometry{})
	require.NoError(t, err)
	return cpu, slices.Clone(output.Data)
}

// check returns the largest difference in levels between the GPU's input and the CPU's, and how many elements differ at all.
func (g *gpu) check(
	t testing.TB, format engine.PixelFormat, width, height, padding, offset int, in *engine.ImageInput,
) (worst float64, differ int) {
	t.Helper()
	onCPU, onGPU := g.both(t, format, width, height, padding, offset, in)
	cpu, gpu := levels(onCPU, in), levels(onGPU, in)
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
	inputs := []*engine.ImageInput{
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

// ways are inputs of every rule, layout, type, colour and range, for images that are resized by that interpolation.
func ways(t testing.TB, by engine.Interpolation) (found []*engine.ImageInput) {
	level := 77
	for n, resize := range []engine.Resize{engine.Letterbox, engine.LetterboxTopLeft, engine.Stretch, engine.Crop} {
		for m, kind := range []engine.DataType{engine.Float32, engine.Float16, engine.Uint8} {
			for k, shape := range [][]int64{{-1, 3, 48, 64}, {-1, 33, 65, 3}, {-1, 1, 40, 40}, {-1, 56, 56, 1}} {
				said := engine.Preprocess{Resize: resize, Interpolation: by}
				if resize == engine.Crop && k == 0 {
					said.ShorterSide = 80
				}
				if (n+m+k)%2 == 0 {
					said.Pad = &level
				}
				if k == 1 && m != 1 {
					said.Colour = engine.BGRColour
				}
				if kind != engine.Uint8 {
					said.Range = [][]float64{{0, 1}, {-1, 1}, {0, 255}}[(n+k)%3]
				}
				inputs := []engine.TensorInfo{{Name: "x", Type: kind, Shape: shape}}
				in, err := engine.FindImageInput(inputs, engine.Metadata{Preprocess: said})
				require.NoError(t, err)
				found = append(found, in)
			}
		}
	}
	return found
}

// Antialiased images are computed in whole numbers but for the weights, which are alike: not a bit differs.
func TestAntialiasEqualsTheCPU(t *testing.T) {
	g := open(t)
	for _, by := range []engine.Interpolation{engine.BilinearAntialias, engine.BicubicAntialias} {
		for _, in := range ways(t, by) {
			for n, format := range formats {
				for _, side := range [][2]int{{1, 1}, {2, 3}, {7, 300}, {64, 48}, {129, 65}, {320, 181}} {
					cpu, gpu := g.both(t, format, side[0], side[1], n%3, n%4, in)
					require.Equal(t, cpu, gpu, "%v %v to %dx%d: %v", format, side, in.Width, in.Height, in.Preprocess)
				}
			}
		}
	}
}

// The same for what the bilinear kernel does after its arithmetic, which rounds now and then otherwise than the CPU.
func TestEveryWayEqualsTheCPU(t *testing.T) {
	g := open(t)
	elements, differ := 0, 0
	for _, in := range ways(t, engine.Bilinear) {
		for n, format := range formats {
			for _, side := range [][2]int{{1, 1}, {2, 3}, {7, 300}, {64, 48}, {129, 65}, {320, 181}} {
				worst, count := g.check(t, format, side[0], side[1], n%3, n%4, in)
				require.LessOrEqual(t, worst, oneLevel, "%v %v to %dx%d: %v", format, side, in.Width, in.Height, in.Preprocess)
				elements, differ = elements+in.Channels*in.Width*in.Height, differ+count
			}
		}
	}
	t.Logf("%d of %d elements differ, by at most one level", differ, elements)
	assert.Less(t, float64(differ), 0.001*float64(elements))
}

func TestMeanAndDeviationEqualTheCPU(t *testing.T) {
	g := open(t)
	for _, preset := range []string{"torchvision", "nanodet", "rfdetr", "ssd-mobilenet"} {
		for _, kind := range []engine.DataType{engine.Float32, engine.Float16} {
			in, err := engine.FindImageInput([]engine.TensorInfo{{Name: "x", Type: kind, Shape: []int64{1, 3, 56, 56}}},
				engine.Metadata{Preprocess: engine.Preprocess{Preset: preset}})
			require.NoError(t, err)
			cpu, gpu := g.both(t, engine.BGR, 56, 56, 0, 0, in) // as large as the input, so that no level depends on the interpolation
			require.Equal(t, cpu, gpu, "%s %v", preset, kind)
		}
	}
}

func TestLetterboxOfCameraSizes(t *testing.T) {
	g := open(t)
	in := &engine.ImageInput{Type: engine.Float32, Channels: 3, Width: 640, Height: 640}
	for _, format := range formats {
		for _, side := range [][2]int{{1920, 1080}, {1280, 720}, {640, 480}, {1366, 768}, {720, 1280}} {
			worst, differ := g.check(t, format, side[0], side[1], 0, 0, in)
			require.LessOrEqual(t, worst, oneLevel, "%v %v", format, side)
			assert.Less(t, differ, 1000, "%v %v", format, side)
		}
	}
}

// The kernel may read the words of four bytes that hold the image's first and last byte and nothing else: closed pages lie around them.
func TestLetterboxStaysInsideTheImage(t *testing.T) {
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
	in := &engine.ImageInput{Type: engine.Float32, Channels: 3, Width: 48, Height: 40}
	output := g.host(t, in.ImageBytes())
	for n, format := range slices.Concat(formats, formats) {
		if n == len(formats) {
			in.Preprocess.Interpolation = engine.BicubicAntialias
		}
		for _, side := range [][2]int{{1, 1}, {2, 2}, {3, 3}, {5, 1}, {1, 5}, {61, 47}, {48, 40}} {
			width, height := fits(format, side[0], side[1])
			im := engine.Image{Width: width, Height: height, Stride: format.RowBytes(width), Format: format}
			for _, offset := range []int{0, len(inside) - size(&im)} { // the first byte first, the last byte last
				arguments, _ := preprocess.NewLetterboxArguments(&im, source.Address+uint64(offset), in, output.Address)
				require.NoError(t, g.stream.Launch(g.imageKernel(in, &arguments)))
				require.NoError(t, g.stream.Synchronize(), "%v %v", format, side)
			}
		}
	}
	require.NoError(t, source.Free())
	require.NoError(t, syscall.Munmap(area))
}

// head is a network's output with its own reference: what postprocess' CPU scan keeps. Its boxes are columns, as in YOLOv8; rows with an
// objectness, as in YOLOv5; or, apart, rows of corners in shares of the input in one output and rows of scores in another.
type head struct {
	images, boxes, classes  int
	objectness, apart, half bool
	data                    [][]float32 // by output
}

func (h *head) boxMap() engine.BoxMap {
	n, c := int64(h.boxes), int64(h.classes)
	m := engine.BoxMap{Count: h.boxes, Classes: h.classes, Objectness: h.objectness, Corners: h.apart, ScaleX: 1, ScaleY: 1}
	switch {
	case h.apart:
		m.Boxes, m.Scores = engine.Numbers{Output: 1, Step: 4, Next: 1}, engine.Numbers{Step: c, Next: 1}
		m.ScaleX, m.ScaleY = 640, 320
	case h.objectness:
		m.Boxes, m.Scores = engine.Numbers{Step: 5 + c, Next: 1}, engine.Numbers{Offset: 5, Step: 5 + c, Next: 1}
	default:
		m.Boxes, m.Scores = engine.Numbers{Step: 1, Next: n}, engine.Numbers{Offset: 4 * n, Step: 1, Next: n}
	}
	return m
}

func (h *head) outputs() []engine.TensorInfo {
	n, c := int64(h.boxes), int64(h.classes)
	kind := engine.Float32
	if h.half {
		kind = engine.Float16
	}
	switch {
	case h.apart:
		return []engine.TensorInfo{{Name: "scores", Type: kind, Shape: []int64{-1, n, c}}, {Name: "boxes", Type: kind, Shape: []int64{-1, n, 4}}}
	case h.objectness:
		return []engine.TensorInfo{{Name: "output0", Type: kind, Shape: []int64{-1, n, 5 + c}}}
	}
	return []engine.TensorInfo{{Name: "output0", Type: kind, Shape: []int64{-1, 4 + c, n}}}
}

// number is a number of a box: a coordinate, or a score, of which the one before the first is the objectness.
func (h *head) number(at engine.Numbers, img, box, i int) *float32 {
	elements := engine.Elements(h.outputs()[at.Output].Shape[1:])
	return &h.data[at.Output][int64(img)*elements+at.Offset+int64(box)*at.Step+int64(i)*at.Next]
}

// fill writes boxes of which a share scores high, and some garbage.
func (h *head) fill(seed uint64, share float64) {
	random := rand.New(rand.NewPCG(seed, 3))
	h.data = nil
	for _, output := range h.outputs() {
		h.data = append(h.data, make([]float32, h.images*int(engine.Elements(output.Shape[1:]))))
	}
	m := h.boxMap()
	first := 0
	if h.objectness {
		first = -1
	}
	garbage := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), -1, 2, 2e6}
	for img := range h.images {
		for box := range h.boxes {
			for i := range 4 {
				v := float32(random.IntN(640)) + 0.5
				if h.apart {
					v /= 1024
				}
				*h.number(m.Boxes, img, box, i) = v
			}
			hot := random.Float64() < share
			for i := first; i < h.classes; i++ {
				score := float32(random.IntN(200)) / 1024
				if hot && (i < 0 || random.IntN(4) == 0) {
					score = float32(256+random.IntN(768)) / 1024 // few values, so that there are ties
				}
				*h.number(m.Scores, img, box, i) = score
			}
			if random.IntN(50) == 0 {
				at, i := m.Boxes, random.IntN(4)
				if random.IntN(2) == 0 {
					at, i = m.Scores, first+random.IntN(h.classes-first)
				}
				*h.number(at, img, box, i) = garbage[random.IntN(len(garbage))]
			}
		}
	}
	if h.half {
		for _, data := range h.data {
			for i, v := range data {
				data[i] = float32(halfValue(toHalf(v)))
			}
		}
	}
}

func (h *head) bytes(output int) []byte {
	var out []byte
	for _, v := range h.data[output] {
		if h.half {
			out = binary.LittleEndian.AppendUint16(out, toHalf(v))
		} else {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}

// filter are the arguments of the kernel for outputs at these addresses.
func (h *head) filter(t testing.TB, outputs []uint64, rows, counts uint64, capacity int, threshold float32) preprocess.FilterArguments {
	t.Helper()
	a, err := preprocess.NewFilterArguments(&engine.Filter{BoxMap: h.boxMap(), Threshold: threshold}, h.outputs(),
		preprocess.FilterMemory{Outputs: outputs, Rows: rows, Counts: counts, Capacity: capacity}, h.images)
	require.NoError(t, err)
	return a
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
	if bits&0x7fff == 0x7c00 {
		return math.Inf(1 - 2*int(bits>>15))
	}
	return half(bits)
}

type row [engine.CandidateFields]float32

// reference lists the boxes of an image, and counts those with a score that is none.
func (h *head) reference(img int, threshold float32) (rows []row, impossible int) {
	const tolerance, maxCoordinate = 1.0 / 64, 1e6
	none := func(score float32) bool { return !(score >= -tolerance && score <= 1+tolerance) }
	inside := func(v, low float32) bool { return v > low && v < maxCoordinate }
	m := h.boxMap()
	for box := range h.boxes {
		objectness := float32(1)
		if h.objectness {
			if objectness = *h.number(m.Scores, img, box, -1); none(objectness) {
				impossible++
				continue
			}
			if objectness < threshold {
				continue
			}
		}
		best, class, bad := float32(0), -1, false
		for c := range h.classes {
			score := objectness * *h.number(m.Scores, img, box, c)
			bad = bad || none(score)
			if !none(score) && score >= threshold && (class < 0 || score > best) {
				best, class = score, c
			}
		}
		if bad {
			impossible++
		}
		coordinate := func(i int, scale float32) float32 { return scale * *h.number(m.Boxes, img, box, i) }
		x, y, width, height := coordinate(0, m.ScaleX), coordinate(1, m.ScaleY), coordinate(2, m.ScaleX), coordinate(3, m.ScaleY)
		r := row{x, y, width, height, best, float32(class)}
		ok := x < width && y < height && inside(x, -maxCoordinate) && inside(y, -maxCoordinate) && inside(width, x) && inside(height, y)
		if !m.Corners {
			r[0], r[1], r[2], r[3] = x-width/2, y-height/2, x+width/2, y+height/2
			ok = inside(width, 0) && inside(height, 0) && inside(x, -maxCoordinate) && inside(y, -maxCoordinate)
		}
		if class >= 0 && ok {
			rows = append(rows, r)
		}
	}
	return rows, impossible
}

func sorted(rows []row) []row {
	rows = append([]row{}, rows...)
	slices.SortFunc(rows, func(a, b row) int { return slices.Compare(a[:], b[:]) })
	return rows
}

// list runs the filter on the GPU and returns each image's rows, how many there were, and how many boxes had a score that is none.
func (g *gpu) list(t testing.TB, h *head, capacity int, threshold float32) (rows [][]row, counts, impossible []int) {
	t.Helper()
	var outputs []uint64
	for i := range h.data {
		data := h.bytes(i)
		output := g.host(t, len(data))
		copy(output.Data, data)
		outputs = append(outputs, output.Address)
	}
	list := g.host(t, h.images*capacity*engine.CandidateFields*4)
	counters := g.host(t, preprocess.CountBytes(h.images))
	a := h.filter(t, outputs, list.Address, counters.Address, capacity, threshold)
	require.NoError(t, g.stream.Fill(counters.Address, 0, 2*h.images))
	require.NoError(t, g.stream.Launch(g.filterKernel(&a, h.images)))
	require.NoError(t, g.stream.Synchronize())
	all := unsafe.Slice((*row)(unsafe.Pointer(&list.Data[0])), h.images*capacity)
	for img := range h.images {
		count := int(binary.LittleEndian.Uint32(counters.Data[4*img:]))
		counts = append(counts, count)
		impossible = append(impossible, int(binary.LittleEndian.Uint32(counters.Data[4*(h.images+img):])))
		rows = append(rows, slices.Clone(all[img*capacity:img*capacity+min(count, capacity)]))
	}
	return rows, counts, impossible
}

func TestFilterEqualsTheReference(t *testing.T) {
	g, seen := open(t), 0
	for _, test := range []struct {
		name      string
		head      head
		share     float64
		threshold float32
	}{
		{"v8", head{images: 1, boxes: 8400, classes: 80}, 0.02, 0.25},
		{"v8 batch", head{images: 3, boxes: 525, classes: 20}, 0.1, 0.25},
		{"v8 half", head{images: 2, boxes: 525, classes: 80, half: true}, 0.1, 0.25},
		{"v8 one class", head{images: 1, boxes: 129, classes: 1}, 0.5, 0.25},
		{"v8 17 classes", head{images: 1, boxes: 300, classes: 17}, 0.5, 0.25},
		{"v8 everything", head{images: 1, boxes: 525, classes: 3}, 1, 0.001},
		{"v8 nothing", head{images: 1, boxes: 525, classes: 3}, 0, 0.25},
		{"v5", head{images: 1, boxes: 25200, classes: 80, objectness: true}, 0.01, 0.25},
		{"v5 batch half", head{images: 2, boxes: 315, classes: 5, objectness: true, half: true}, 0.3, 0.25},
		{"boxes apart", head{images: 1, boxes: 8400, classes: 80, apart: true}, 0.02, 0.25},
		{"boxes apart batch half", head{images: 3, boxes: 525, classes: 21, apart: true, half: true}, 0.3, 0.25},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.head.fill(1, test.share)
			rows, counts, impossible := g.list(t, &test.head, test.head.boxes, test.threshold)
			for img := range test.head.images {
				want, none := test.head.reference(img, test.threshold)
				require.Equal(t, none, impossible[img])
				seen += none
				require.Len(t, rows[img], len(want))
				require.Equal(t, len(want), counts[img])
				require.Equal(t, sorted(want), sorted(rows[img]))
				if test.share > 0 {
					require.NotEmpty(t, want)
				}
			}
		})
	}
	require.Positive(t, seen, "scores that are none")
}

func TestFilterCountsWhatDoesNotFit(t *testing.T) {
	g := open(t)
	h := head{images: 2, boxes: 525, classes: 3}
	h.fill(2, 1)
	rows, counts, _ := g.list(t, &h, 100, 0.25)
	for img := range h.images {
		want, _ := h.reference(img, 0.25)
		require.Greater(t, len(want), 100)
		assert.Equal(t, len(want), counts[img])
		require.Len(t, rows[img], 100)
		assert.Subset(t, want, rows[img])
	}
}

// TestGraph replays the whole frame, then gives it an image of another size and format, as a camera change does.
func TestGraph(t *testing.T) {
	g := open(t)
	in := &engine.ImageInput{Type: engine.Float32, Channels: 3, Width: 64, Height: 64}
	source, output := g.host(t, 256*256*4), g.host(t, in.ImageBytes())
	noise(source.Data, 5)
	h := head{images: 1, boxes: 256, classes: 4}
	h.fill(4, 0.2)
	data := h.bytes(0)
	network, list, counts := g.host(t, len(data)), g.host(t, 256*engine.CandidateFields*4), g.host(t, preprocess.CountBytes(1))
	copy(network.Data, data)
	filter := h.filter(t, []uint64{network.Address}, list.Address, counts.Address, 256, 0.25)
	img := func(format engine.PixelFormat, width, height int) (engine.Image, preprocess.LetterboxArguments) {
		im := engine.Image{Width: width, Height: height, Stride: format.RowBytes(width), Format: format}
		im.Data = source.Data[:size(&im)]
		arguments, _ := preprocess.NewLetterboxArguments(&im, source.Address, in, output.Address)
		return im, arguments
	}
	first, arguments := img(engine.BGR, 100, 60)
	var node cudatest.Node
	graph, err := g.stream.Capture(func() error {
		if err := g.stream.Launch(g.imageKernel(in, &arguments)); err != nil {
			return err
		}
		var err error
		if node, err = g.stream.Captured(); err != nil {
			return err
		}
		if err := g.stream.Fill(counts.Address, 0, 2); err != nil {
			return err
		}
		return g.stream.Launch(g.filterKernel(&filter, 1))
	})
	require.NoError(t, err)
	want, _ := h.reference(0, 0.25)
	defer func() { assert.NoError(t, graph.Close()) }()
	letterbox := preprocess.NewLetterbox(in)
	verify := func(im engine.Image) {
		t.Helper()
		for range 3 {
			require.NoError(t, graph.Launch(g.stream))
			require.NoError(t, g.stream.Synchronize())
			assert.Equal(t, len(want), int(binary.LittleEndian.Uint32(counts.Data)), "the counter starts at 0 in every replay")
		}
		words := make([]float32, in.ImageBytes()/4)
		want := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), in.ImageBytes())
		_, err := letterbox.Run(&im, want, preprocess.Geometry{})
		require.NoError(t, err)
		assert.InDeltaSlice(t, levels(want, in), levels(output.Data, in), oneLevel)
	}
	verify(first)
	second, arguments := img(engine.NV12, 90, 200)
	require.NoError(t, graph.Replace(node, g.imageKernel(in, &arguments)))
	verify(second)
}
