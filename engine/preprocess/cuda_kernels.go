package preprocess

import (
	_ "embed"

	"github.com/edge-infer/edge-infer/engine"
)

//go:embed kernels.ptx
var ptx string

// PTX is the text of the CUDA kernels, for any GPU of compute capability 5.3 or newer: LetterboxKernel and FilterKernel.
func PTX() string { return ptx }

// Names of the kernels. Each takes its arguments struct by value as its only parameter.
const (
	LetterboxKernel = "letterbox"
	FilterKernel    = "filter"
)

// LetterboxArguments are the arguments of LetterboxKernel, one picture into one batch position, in C's layout (see arguments.h). A graph
// that captured a launch can be given others.
type LetterboxArguments struct {
	source, end, output       uint64
	format, stride            int32
	channels, half            int32
	sourceWidth, sourceHeight int32
	width, height             int32
	left, top                 int32
	innerWidth, innerHeight   int32
}

// NewLetterboxArguments describes the letterbox of a picture. source is the device address of the picture's first byte, output that of the
// batch position's first element. The picture must have passed Check; its Data is not read.
func NewLetterboxArguments(im *engine.Image, source uint64, input engine.PictureInput, output uint64) (LetterboxArguments, Geometry) {
	g := Fit(im.Width, im.Height, input.Width, input.Height)
	return LetterboxArguments{
		source: source, end: source + uint64(im.Stride)*uint64(im.Format.Rows(im.Height)-1) + uint64(im.Format.RowBytes(im.Width)), output: output,
		format: int32(im.Format), stride: int32(im.Stride), channels: int32(input.Channels), half: flag(input.Type == engine.Float16),
		sourceWidth: int32(g.SourceWidth), sourceHeight: int32(g.SourceHeight), width: int32(g.Width), height: int32(g.Height),
		left: int32(g.Left), top: int32(g.Top), innerWidth: int32(g.InnerWidth), innerHeight: int32(g.InnerHeight),
	}, g
}

// Grid is the launch that the arguments need.
func (a *LetterboxArguments) Grid() (grid, block [3]uint32) {
	return [3]uint32{blocks(a.width, 64), blocks(a.height, 8), 1}, [3]uint32{32, 8, 1}
}

// FilterArguments are the arguments of FilterKernel, in C's layout (see arguments.h).
type FilterArguments struct {
	// Output is the device address of the network's output, Rows that of float32 [pictures][Capacity][engine.CandidateFields], Counts that
	// of uint32 [pictures], which must be 0 before each launch and may end above Capacity: the excess was left out. Rows may be in mapped
	// host memory, Counts should not: the device would cross the bus for each row.
	Output, Rows, Counts uint64
	// Elements of the output from picture to picture, from box to box and from field to field.
	PictureStride, AnchorStride, FieldStride int64
	Anchors, Classes, Capacity               int32
	// Objectness is 1 when the fields are centre, size, objectness, classes, as in YOLOv5, and 0 when they are centre, size, classes.
	Objectness int32
	// Half is 1 for a binary16 output.
	Half int32
	// Confidence is the lowest score that is listed, over 0.
	Confidence float32
}

// Grid is the launch for a number of pictures.
func (a *FilterArguments) Grid(pictures int) (grid, block [3]uint32) {
	return [3]uint32{blocks(a.Anchors, 128), uint32(pictures), 1}, [3]uint32{128, 1, 1}
}

func blocks(size, block int32) uint32 { return uint32((size + block - 1) / block) }

func flag(set bool) int32 {
	if set {
		return 1
	}
	return 0
}
