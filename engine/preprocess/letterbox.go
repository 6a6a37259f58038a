package preprocess

// #cgo CFLAGS: -O3 -std=c11 -Wall -Wextra
// #cgo LDFLAGS: -lm
// #include "letterbox.h"
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
)

// Letterbox writes images into one network input on the CPU, by the resize rule of the input. It caches tables by source size, so that an
// image costs one C call and no allocation. It must not be used by two goroutines at once and needs no Close.
type Letterbox struct {
	input   engine.ImageInput
	plans   []*plan
	scratch []byte
}

// plan holds the tables for one source size and format.
type plan struct {
	geometry Geometry
	format   engine.PixelFormat
	box      C.ei_letterbox
	tables   []int32
}

// maxPlans is the number of cached plans; the oldest is replaced first.
const maxPlans = 16

// NewLetterbox returns a letterbox for that input.
func NewLetterbox(input *engine.ImageInput) *Letterbox { return &Letterbox{input: *input} }

// Run writes the image into output, which must hold input.ImageBytes() bytes, aligned to the element's size, and returns its geometry.
// drawn is the geometry whose border output still holds from an earlier Run, or zero if unknown; if it is the same, only the image is
// written.
func (l *Letterbox) Run(im *engine.Image, output []byte, drawn Geometry) (Geometry, error) {
	if err := im.Check(); err != nil {
		return Geometry{}, err
	}
	if need := l.input.ImageBytes(); len(output) < need {
		return Geometry{}, &engine.Error{
			Op: "submit", Kind: engine.ErrShape,
			Message: fmt.Sprintf("%d bytes for an input of %d", len(output), need),
		}
	}
	p := l.plan(im)
	border := C.int(1)
	if p.geometry == drawn {
		border = 0
	}
	C.ei_letterbox_run(&p.box, (*C.int32_t)(&p.tables[0]), unsafe.Pointer(&l.scratch[0]), (*C.uint8_t)(&im.Data[0]), C.size_t(im.Stride),
		border, unsafe.Pointer(&output[0]))
	return p.geometry, nil
}

func (l *Letterbox) plan(im *engine.Image) *plan {
	for _, p := range l.plans {
		if p.geometry.SourceWidth == im.Width && p.geometry.SourceHeight == im.Height && p.format == im.Format {
			return p
		}
	}
	var p *plan
	if len(l.plans) == maxPlans { // reuse the oldest tables: crops vary in size
		p = l.plans[0]
		l.plans = append(l.plans[:0], l.plans[1:]...)
	} else {
		p = &plan{}
	}
	p.geometry, p.format = Fit(im.Width, im.Height, &l.input), im.Format
	p.box = box(p.geometry, im.Format, &l.input)
	need := int(C.ei_letterbox_table_size(&p.box))
	p.tables = slices.Grow(p.tables[:0], need)[:need]
	C.ei_letterbox_prepare(&p.box, (*C.int32_t)(&p.tables[0]))
	if need := int(C.ei_letterbox_scratch_size(&p.box)); need > len(l.scratch) {
		l.scratch = make([]byte, need)
	}
	l.plans = append(l.plans, p)
	return p
}

// box converts the geometry and input to C, for the CPU and the GPU kernels.
func box(g Geometry, format engine.PixelFormat, in *engine.ImageInput) C.ei_letterbox {
	b := C.ei_letterbox{
		format: C.int32_t(format), source_width: C.int32_t(g.SourceWidth), source_height: C.int32_t(g.SourceHeight),
		width: C.int32_t(g.Width), height: C.int32_t(g.Height), left: C.int32_t(g.Left), top: C.int32_t(g.Top),
		inner_width: C.int32_t(g.InnerWidth), inner_height: C.int32_t(g.InnerHeight),
		channels: C.int32_t(in.Channels), pad: C.int32_t(in.Pad()),
	}
	switch in.Interpolation() {
	case engine.BilinearAntialias:
		b.interpolation = C.EI_BILINEAR_ANTIALIAS
	case engine.BicubicAntialias:
		b.interpolation = C.EI_BICUBIC_ANTIALIAS
	}
	if in.Preprocess.Colour == engine.BGRColour {
		b.bgr = 1
	}
	if in.Interleaved && in.Channels > 1 {
		b.interleaved = 1
	}
	switch in.Type {
	case engine.Float16:
		b.element = C.EI_FLOAT16
	case engine.Uint8:
		b.element = C.EI_UINT8
	}
	scale, bias := in.Affine()
	for colour := range scale {
		channel := colour
		if b.bgr != 0 {
			channel = 2 - colour
		}
		b.scale[colour], b.bias[colour] = C.float(scale[channel]), C.float(bias[channel])
	}
	return b
}
