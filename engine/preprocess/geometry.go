// Package preprocess turns camera images into network inputs as the model wants them (engine.Preprocess): resize, pad or crop, convert
// the colours, scale and lay out, in one pass over the image. Geometry is shared by the CPU path of this package and the CUDA kernels.
package preprocess

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
)

// Geometry places a source image in the network's input. All numbers are pixels.
type Geometry struct {
	SourceWidth, SourceHeight int
	Width, Height             int // of the network's input
	// Left and Top are the position of the resized image in the input, negative if it is cropped.
	Left, Top               int
	InnerWidth, InnerHeight int // of the resized image, at least 1
}

// Fit computes the geometry by the input's rule for sizes; both sides of the source must be at least 1.
func Fit(sourceWidth, sourceHeight int, in *engine.ImageInput) Geometry {
	g := Geometry{
		SourceWidth: sourceWidth, SourceHeight: sourceHeight, Width: in.Width, Height: in.Height, InnerWidth: in.Width, InnerHeight: in.Height,
	}
	switch in.Preprocess.Resize {
	case engine.Stretch:
	case engine.Crop:
		g.crop(in.Preprocess.ShorterSide)
	case engine.LetterboxTopLeft:
		g.letterbox(math.Floor)
	default:
		g.letterbox(math.RoundToEven)
		g.Left, g.Top = (g.Width-g.InnerWidth)/2, (g.Height-g.InnerHeight)/2
	}
	return g
}

// letterbox uses one scale for both sides. Ultralytics rounds the sides, YOLOX does not; both divide and multiply in this order.
func (g *Geometry) letterbox(round func(float64) float64) {
	scale := min(float64(g.Width)/float64(g.SourceWidth), float64(g.Height)/float64(g.SourceHeight))
	inner := func(source, limit int) int { return min(max(int(round(float64(source)*scale)), 1), limit) }
	g.InnerWidth, g.InnerHeight = inner(g.SourceWidth, g.Width), inner(g.SourceHeight, g.Height)
}

// crop makes the shorter side that long, or lets the image just cover the input when shorter is 0, and puts the middle of the image in
// the middle of the input. Rounding is torchvision's: the longer side downwards, the crop's corner to the nearest, ties to even.
func (g *Geometry) crop(shorter int) {
	upright := g.SourceWidth <= g.SourceHeight
	if shorter == 0 {
		upright = g.Width*g.SourceHeight >= g.Height*g.SourceWidth
		shorter = g.Height
		if upright {
			shorter = g.Width
		}
	}
	// Sides are limited to MaxSide: the crop of such a strip is stretched slightly.
	longer := func(of, to int) int { return min(max(shorter*of/to, 1), engine.MaxSide) }
	if upright {
		g.InnerWidth, g.InnerHeight = shorter, longer(g.SourceHeight, g.SourceWidth)
	} else {
		g.InnerWidth, g.InnerHeight = longer(g.SourceWidth, g.SourceHeight), shorter
	}
	corner := func(inner, side int) int {
		if inner < side {
			return (side - inner) / 2
		}
		return -int(math.RoundToEven(float64(inner-side) / 2))
	}
	g.Left, g.Top = corner(g.InnerWidth, g.Width), corner(g.InnerHeight, g.Height)
}

// Transform returns the transform from input to source coordinates.
func (g Geometry) Transform() engine.Transform {
	return engine.Transform{
		ScaleX: float32(g.InnerWidth) / float32(g.SourceWidth), ScaleY: float32(g.InnerHeight) / float32(g.SourceHeight),
		PadX: float32(g.Left), PadY: float32(g.Top),
	}
}
