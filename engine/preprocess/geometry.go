// Package preprocess turns camera pictures into network inputs: resize with the sides' ratio kept, pad, convert the colours, scale to 0..1
// and split into planes, in one pass over the picture. Geometry is shared by the CPU path of this package and the CUDA kernel.
package preprocess

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
)

// PadLevel is the gray of the border, out of 255.
const PadLevel = 114

// Geometry places a source picture in the network's input as Ultralytics' LetterBox does: one scale for both sides, the rest split evenly
// between the two borders, the odd pixel to the right or the bottom. All numbers are pixels.
type Geometry struct {
	SourceWidth, SourceHeight int
	Width, Height             int // of the network's input
	Left, Top                 int // where the picture starts in the input
	InnerWidth, InnerHeight   int // of the resized picture, at least 1
}

// Fit computes the geometry; all four sides must be at least 1.
func Fit(sourceWidth, sourceHeight, width, height int) Geometry {
	scale := min(float64(width)/float64(sourceWidth), float64(height)/float64(sourceHeight))
	inner := func(source, limit int) int {
		return min(max(int(math.RoundToEven(float64(source)*scale)), 1), limit)
	}
	g := Geometry{
		SourceWidth: sourceWidth, SourceHeight: sourceHeight, Width: width, Height: height,
		InnerWidth: inner(sourceWidth, width), InnerHeight: inner(sourceHeight, height),
	}
	g.Left, g.Top = (width-g.InnerWidth)/2, (height-g.InnerHeight)/2
	return g
}

// Transform takes points of the input back to the source picture.
func (g Geometry) Transform() engine.Transform {
	return engine.Transform{
		ScaleX: float32(g.InnerWidth) / float32(g.SourceWidth), ScaleY: float32(g.InnerHeight) / float32(g.SourceHeight),
		PadX: float32(g.Left), PadY: float32(g.Top),
	}
}
