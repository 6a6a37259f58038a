package tensorrt

// #include "shim.h"
import "C"

import (
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// kernels are the preprocessing and filter steps on the GPU.
type kernels struct {
	module            *cuda.Module
	letterboxFunction cuda.Function
	filterFunction    cuda.Function
	input             *engine.ImageInput
}

// listCapacity is the largest number of candidates per image. Decoders keep at most 300 boxes after NMS, each from about ten candidates.
const listCapacity = 4096

func newKernels(e *Engine) (*kernels, error) {
	k := &kernels{input: e.img}
	var err error
	k.module, err = e.device.NewModule(preprocess.PTX())
	if err != nil {
		return nil, err
	}
	k.letterboxFunction, err = k.module.Function(preprocess.ImageKernel(k.input))
	if err == nil {
		k.filterFunction, err = k.module.Function(preprocess.FilterKernel)
	}
	if err != nil {
		_ = k.module.Close() // the missing kernel is the more useful error
		return nil, err
	}
	return k, nil
}

func (k *kernels) close() error {
	if k == nil {
		return nil
	}
	return k.module.Close()
}

// letterbox sets the launch parameters for one image at a device address.
func (k *kernels) letterbox(p *C.ei_image, im *engine.Image, source, output uint64) engine.Transform {
	a := (*preprocess.LetterboxArguments)(unsafe.Pointer(&p.arguments[0]))
	var g preprocess.Geometry
	*a, g = preprocess.NewLetterboxArguments(im, source, k.input, output)
	grid, block := a.Grid()
	launch(&p.letterbox, k.letterboxFunction, grid, block, unsafe.Pointer(a), unsafe.Sizeof(*a))
	return g.Transform()
}

// launch sets the parameters of a kernel. arguments is in the same C struct as the kernel.
func launch(to *C.ei_cuda_kernel, function cuda.Function, grid, block [3]uint32, arguments unsafe.Pointer, size uintptr) {
	to.function = C.ei_cuda_function(function)
	for i := range 3 {
		to.grid[i], to.block[i] = C.uint(grid[i]), C.uint(block[i])
	}
	to.arguments, to.size = arguments, C.size_t(size)
}

// candidates is a slot's list of boxes over the threshold: a count per image, then rows per image. The counts are in device memory and
// copied, because all threads of an image increment one counter; in host memory that took 155 microseconds on a discrete GPU. The rows are
// written once by few threads and go to mapped memory if there is any, so that only the existing ones cross the bus.
type candidates struct {
	images    int
	function  cuda.Function
	arguments *preprocess.FilterArguments // inside the request
	device    *cuda.Memory
	host      *cuda.HostMemory
	inPlace   bool // the rows are written to host
	counts    []uint32
	rows      []float32
	lists     []engine.Candidates
}

// countBytes returns the size of the counts, rounded up so that the rows are aligned.
func countBytes(images int) int { return (preprocess.CountBytes(images) + 255) &^ 255 }

func (e *Engine) newCandidates(r *C.ei_request) (*candidates, error) {
	images := e.model.MaxBatch
	c := &candidates{images: images, function: e.kernels.filterFunction, inPlace: e.mapped}
	bytes := countBytes(images) + images*listCapacity*engine.CandidateFields*4
	var err error
	c.host, err = e.device.AllocHost(bytes)
	if err != nil {
		return c, err
	}
	clear(c.host.Data)
	onDevice := bytes
	if c.inPlace {
		onDevice = countBytes(images)
	}
	c.device, err = e.device.Alloc(onDevice)
	if err != nil {
		return c, err
	}
	list := c.device.Address
	rows := list
	if c.inPlace {
		rows = c.host.Address
	}
	f := &r.filter
	c.counts = unsafe.Slice((*uint32)(unsafe.Pointer(&c.host.Data[0])), 2*images)
	c.lists = make([]engine.Candidates, images)
	c.rows = unsafe.Slice((*float32)(unsafe.Pointer(&c.host.Data[countBytes(images)])), images*listCapacity*engine.CandidateFields)
	f.enabled = 1
	f.clear, f.clear_words = C.ei_cuda_pointer(list), C.size_t(2*images)
	f.list, f.list_host = C.ei_cuda_pointer(list), unsafe.Pointer(&c.host.Data[0])
	c.arguments = (*preprocess.FilterArguments)(unsafe.Pointer(&f.arguments[0]))
	m := preprocess.FilterMemory{Rows: rows + uint64(countBytes(images)), Counts: list, Capacity: listCapacity}
	for i := range e.tensors {
		if e.tensors[i].input == 0 {
			m.Outputs = append(m.Outputs, uint64(r.io[i].device))
		}
	}
	*c.arguments, err = preprocess.NewFilterArguments(e.model.Filter, e.model.Outputs, m, images)
	return c, err
}

// prepare sets up the filter for a number of images.
func (c *candidates) prepare(r *C.ei_request, images int) {
	if c == nil {
		return
	}
	grid, block := c.arguments.Grid(images)
	launch(&r.filter.kernel, c.function, grid, block, unsafe.Pointer(c.arguments), unsafe.Sizeof(*c.arguments))
	bytes := preprocess.CountBytes(c.images)
	if !c.inPlace {
		bytes = countBytes(c.images) + images*listCapacity*engine.CandidateFields*4
	}
	r.filter.list_bytes = C.size_t(bytes)
}

// collect returns the lists of the images as views of the slot's memory.
func (c *candidates) collect(images int) []engine.Candidates {
	lists := c.lists[:images]
	for i := range lists {
		all := int(c.counts[i])
		count := min(all, listCapacity)
		at := i * listCapacity * engine.CandidateFields
		lists[i] = engine.Candidates{
			Rows: c.rows[at : at+count*engine.CandidateFields], Truncated: all - count, Impossible: int(c.counts[c.images+i]),
		}
	}
	return lists
}

func (c *candidates) close() {
	if c == nil {
		return
	}
	_ = c.host.Free() // cannot be handled; the context is destroyed next
	_ = c.device.Free()
}
