package diagnose

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/cudatest"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// gpu is a CUDA device with the letterbox kernel.
type gpu struct {
	*cuda.Device
	stream   *cudatest.Stream
	module   *cuda.Module
	function cuda.Function
}

func openGPU(number int) (g *gpu, err error) {
	device, err := cuda.Open(number)
	if err != nil {
		return nil, err
	}
	g = &gpu{Device: device}
	if g.stream, err = cudatest.NewStream(device); err == nil {
		g.module, err = device.NewModule(preprocess.PTX())
	}
	if err == nil {
		g.function, err = g.module.Function(preprocess.LetterboxKernel)
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *gpu) close() error {
	var errs []error
	if g.module != nil {
		errs = append(errs, g.module.Close())
	}
	return errors.Join(append(errs, g.stream.Close(), g.Device.Close())...)
}

// testImage is an image in page-locked memory that the GPU can read, and its letterbox computed on the CPU.
type testImage struct {
	engine.Image
	source, output *cuda.HostMemory
	want           []byte
}

func (p *testImage) free() error { return errors.Join(p.source.Free(), p.output.Free()) }

// newImage makes an image of random noise.
func (g *gpu) newImage(format engine.PixelFormat, width, height int, in *engine.ImageInput) (p *testImage, err error) {
	p = &testImage{Image: engine.Image{Width: width, Height: height, Stride: format.RowBytes(width), Format: format}}
	bytes := p.Stride * format.Rows(height)
	if p.source, err = g.AllocHost((bytes + 3) &^ 3); err != nil { // the kernels read whole words
		return nil, err
	}
	if p.output, err = g.AllocHost(in.ImageBytes()); err != nil {
		return nil, errors.Join(err, p.source.Free())
	}
	random := rand.NewChaCha8([32]byte{byte(format), byte(width)})
	_, _ = random.Read(p.source.Data) // never fails
	p.Data = p.source.Data[:bytes]
	words := make([]float32, in.ImageBytes()/4)
	p.want = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), in.ImageBytes())
	if _, err := preprocess.NewLetterbox(in).Run(&p.Image, p.want, preprocess.Geometry{}); err != nil {
		return nil, errors.Join(err, p.free())
	}
	return p, nil
}

// kernel returns the launch that letterboxes an image at a device address.
func (g *gpu) kernel(p *testImage, from uint64, in *engine.ImageInput) *cuda.Kernel {
	arguments, _ := preprocess.NewLetterboxArguments(&p.Image, from, in, p.output.Address)
	grid, block := arguments.Grid()
	return &cuda.Kernel{Function: g.function, Grid: grid, Block: block, Arguments: slices.Clone(cuda.Bytes(&arguments))}
}

// clear fills the output with NaN, so that missing elements are detected.
func (p *testImage) clear() {
	for i := range p.output.Data {
		p.output.Data[i] = 0xff
	}
}

// maxDifference returns the largest difference from the CPU's result in levels of 0 to 255.
func (p *testImage) maxDifference() float64 {
	worst := 0.0
	number := func(data []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(data))) }
	for i := 0; i < len(p.want); i += 4 {
		if difference := 255 * math.Abs(number(p.output.Data[i:])-number(p.want[i:])); !(difference <= worst) {
			worst = difference
		}
	}
	return worst
}

// oneLevel is the allowed difference between GPU and CPU: both round to levels, with a margin for floating-point rounding.
const oneLevel = 1 + 1.0/64

var (
	testFormats  = []engine.PixelFormat{engine.BGR, engine.BGRx, engine.NV12, engine.YUYV, engine.GRAY8}
	testSizes    = [][2]int{{64, 48}, {320, 180}, {1280, 720}, {1920, 1080}, {130, 498}}
	networkInput = &engine.ImageInput{Type: engine.Float32, Channels: 3, Width: 416, Height: 416}
)

// eachImage opens the GPU and calls try for images of all formats and sizes.
func (r *request) eachImage(try func(*gpu, *testImage) error) (images int, name string, err error) {
	g, err := openGPU(r.Engine.FirstGPU())
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for _, format := range testFormats {
		for _, side := range testSizes {
			p, err := g.newImage(format, side[0], side[1], networkInput)
			if err != nil {
				return images, "", err
			}
			if err := errors.Join(try(g, p), p.free()); err != nil {
				return images, "", fmt.Errorf("%v %dx%d: %w", format, side[0], side[1], err)
			}
			images++
		}
	}
	return images, g.Facts().Name, nil
}

// run waits for the work that enqueue puts on the stream and compares the output.
func (g *gpu) run(p *testImage, enqueue func() error) (worst float64, err error) {
	p.clear()
	if err := enqueue(); err != nil {
		return 0, err
	}
	if err := g.stream.Synchronize(); err != nil {
		return 0, err
	}
	if worst = p.maxDifference(); !(worst <= oneLevel) {
		return worst, fmt.Errorf("the GPU's letterbox differs from the CPU's by %.3g levels", worst)
	}
	return worst, nil
}

// kernels compares the letterbox kernel with the CPU for images of every format.
func (r *request) kernels(context.Context) (string, error) {
	largest := 0.0
	n, name, err := r.eachImage(func(g *gpu, p *testImage) error {
		worst, err := g.run(p, func() error { return g.stream.Launch(g.kernel(p, p.source.Address, networkInput)) })
		largest = max(largest, worst)
		return err
	})
	return fmt.Sprintf("%s: %d images in %d formats match the CPU, difference at most %.3g of 255 levels", name, n, len(testFormats),
		largest), err
}

// graph does the same with a captured CUDA graph, also after replacing its kernel arguments.
func (r *request) graph(context.Context) (string, error) {
	n, name, err := r.eachImage(func(g *gpu, p *testImage) (err error) {
		small, err := g.newImage(engine.BGR, 96, 64, networkInput)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, small.free()) }()
		var node cudatest.Node
		graph, err := g.stream.Capture(func() error {
			if err := g.stream.Launch(g.kernel(small, small.source.Address, networkInput)); err != nil {
				return err
			}
			var err error
			node, err = g.stream.Captured()
			return err
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, graph.Close()) }()
		launch := func() error { return graph.Launch(g.stream) }
		if _, err := g.run(small, launch); err != nil {
			return err
		}
		if err := graph.Replace(node, g.kernel(p, p.source.Address, networkInput)); err != nil {
			return err
		}
		_, err = g.run(p, launch)
		return err
	})
	return fmt.Sprintf("%s: %d graphs captured, replayed, and replayed with another image", name, n), err
}

// memory compares images read from mapped host memory with copies in device memory.
func (r *request) memory(context.Context) (string, error) {
	var facts cuda.Facts
	n, name, err := r.eachImage(func(g *gpu, p *testImage) (err error) {
		facts = g.Facts()
		if !facts.MapsHostMemory {
			return fmt.Errorf("%w: %s cannot map host memory", errAbsent, facts.Name)
		}
		if _, err := g.run(p, func() error { return g.stream.Launch(g.kernel(p, p.source.Address, networkInput)) }); err != nil {
			return fmt.Errorf("in place: %w", err)
		}
		copied, err := g.Alloc(len(p.source.Data))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, copied.Free()) }()
		_, err = g.run(p, func() error {
			if err := g.stream.Copy(copied.Address, p.source.Address, len(p.source.Data)); err != nil {
				return err
			}
			return g.stream.Launch(g.kernel(p, copied.Address, networkInput))
		})
		if err != nil {
			return fmt.Errorf("copied: %w", err)
		}
		return err
	})
	kind := "own memory: images are read over the bus"
	if facts.Integrated {
		kind = "memory shared with the CPU: images are read in place"
	}
	return fmt.Sprintf("%s, %s; %d images mapped and copied", name, kind, n), err
}
