package preprocess

// #include "arguments.h"
import "C"

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"sync"

	"github.com/edge-infer/edge-infer/engine"
)

//go:embed kernels.ptx.gz
var ptx []byte // compressed, because only machines with a GPU need it

// PTX returns the text of the CUDA kernels, for GPUs of compute capability 5.3 or newer.
var PTX = sync.OnceValue(func() string {
	reader, err := gzip.NewReader(bytes.NewReader(ptx))
	if err != nil {
		panic(err) // the program file is damaged
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		panic(err)
	}
	return string(text)
})

// Names of the kernels. Each takes its arguments struct by value as its only parameter.
const (
	LetterboxKernel = "letterbox"
	AntialiasKernel = "antialias"
	FilterKernel    = "filter"
)

// ImageKernel is the kernel that writes images into that input: LetterboxKernel or AntialiasKernel, with the same arguments.
func ImageKernel(in *engine.ImageInput) string {
	if in.Interpolation() == engine.Bilinear {
		return LetterboxKernel
	}
	return AntialiasKernel
}

// LetterboxArguments are the arguments of the image kernels for one image and batch position. They can be replaced in a captured graph.
type LetterboxArguments struct{ c C.ei_letterbox_arguments }

// NewLetterboxArguments returns the kernel arguments for one image. source is the device address of its first byte, unless the image is in
// device memory itself; output is the address of the first element of its batch position. The image must have passed Check; its Data is not
// read.
func NewLetterboxArguments(im *engine.Image, source uint64, in *engine.ImageInput, output uint64) (LetterboxArguments, Geometry) {
	g := Fit(im.Width, im.Height, in)
	chroma := source + uint64(im.Stride)*uint64(im.Height)
	if im.OnDevice() {
		source, chroma = im.Device.Address, im.Device.Chroma
	}
	end := source + uint64(im.Stride)*uint64(im.Height-1) + uint64(im.Format.RowBytes(im.Width))
	if im.Format == engine.NV12 {
		end = chroma + uint64(im.Stride)*uint64(im.Height/2-1) + uint64(im.Width)
	}
	element, plane := in.Type.Size(), in.Width*in.Height*in.Type.Size()
	a := C.ei_letterbox_arguments{
		source: C.uint64_t(source), end: C.uint64_t(end), chroma: C.uint64_t(chroma), stride: C.int32_t(im.Stride), box: box(g, im.Format, in),
		pixel_bytes: C.int32_t(element),
	}
	channel := plane
	if a.box.interleaved != 0 {
		channel, a.pixel_bytes = element, C.int32_t(element*in.Channels)
	}
	for colour := range a.output {
		at := colour
		if a.box.bgr != 0 {
			at = 2 - colour
		}
		a.output[colour] = C.uint64_t(output + uint64(at*channel))
	}
	return LetterboxArguments{a}, g
}

// Grid returns the grid of the launch.
func (a *LetterboxArguments) Grid() (grid, block [3]uint32) {
	columns := int32(C.EI_LETTERBOX_COLUMNS)
	if a.c.box.interpolation != C.EI_BILINEAR {
		columns = C.EI_ANTIALIAS_COLUMNS
	}
	return [3]uint32{blocks(int32(a.c.box.width), columns), blocks(int32(a.c.box.height), 8), 1}, [3]uint32{32, 8, 1}
}

// FilterArguments are the arguments of FilterKernel.
type FilterArguments struct{ c C.ei_filter_arguments }

// FilterMemory has the device addresses that the filter reads and writes.
type FilterMemory struct {
	// Outputs are the network's outputs, in order.
	Outputs []uint64
	// Rows is float32 [images][Capacity][engine.CandidateFields].
	Rows uint64
	// Counts is uint32 [2][images], which must be 0 before each launch: the rows of each image, above Capacity if rows were dropped, then
	// the boxes of each image with an invalid score. Rows may be in mapped host memory; Counts should not, since the device would access the
	// bus for each row.
	Counts uint64
	// Capacity is the maximum number of rows per image.
	Capacity int
}

// NewFilterArguments returns the kernel arguments of the candidate filter for up to that many images. outputs are the network's outputs;
// their shapes must be known except for the batch. It returns the error of engine.BoxMap.Check, or an error for outputs without floating
// point numbers.
func NewFilterArguments(f *engine.Filter, outputs []engine.TensorInfo, m FilterMemory, images int) (FilterArguments, error) {
	if err := f.Check(outputs); err != nil {
		return FilterArguments{}, err
	}
	a := C.ei_filter_arguments{
		rows: C.uint64_t(m.Rows), counts: C.uint64_t(m.Counts), box_step: C.int64_t(f.Boxes.Step), box_next: C.int64_t(f.Boxes.Next),
		score_step: C.int64_t(f.Scores.Step), score_next: C.int64_t(f.Scores.Next), images: C.int32_t(images), count: C.int32_t(f.Count),
		classes: C.int32_t(f.Classes), capacity: C.int32_t(m.Capacity), objectness: flag(f.Objectness), corners: flag(f.Corners),
		scale_x: C.float(f.ScaleX), scale_y: C.float(f.ScaleY), threshold: C.float(f.Threshold),
	}
	for _, part := range []struct {
		numbers *engine.Numbers
		address *C.uint64_t
		img     *C.int64_t
		half    *C.int32_t
	}{{&f.Boxes, &a.boxes, &a.box_image, &a.half_boxes}, {&f.Scores, &a.scores, &a.score_image, &a.half_scores}} {
		output := &outputs[part.numbers.Output]
		if output.Type != engine.Float32 && output.Type != engine.Float16 {
			return FilterArguments{}, &engine.Error{
				Op: "filter", Kind: engine.ErrUnsupported,
				Message: fmt.Sprintf("output %s is %v, only float32 and float16 are filtered", output.Name, output.Type),
			}
		}
		*part.address = C.uint64_t(m.Outputs[part.numbers.Output] + uint64(part.numbers.Offset)*uint64(output.Type.Size()))
		*part.img, *part.half = C.int64_t(engine.Elements(output.Shape[1:])), flag(output.Type == engine.Float16)
	}
	return FilterArguments{a}, nil
}

func flag(set bool) C.int32_t {
	if set {
		return 1
	}
	return 0
}

// CountBytes is the size of FilterMemory.Counts for that many images.
func CountBytes(images int) int { return 8 * images }

// Grid is the launch for a number of images.
func (a *FilterArguments) Grid(images int) (grid, block [3]uint32) {
	return [3]uint32{blocks(int32(a.c.count), 128), uint32(images), 1}, [3]uint32{128, 1, 1}
}

func blocks(size, block int32) uint32 { return uint32((size + block - 1) / block) }
