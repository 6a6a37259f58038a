// Package jpegimage copies the pixels of frames and encodes them as JPEGs. Every image that leaves the process comes from here, so that
// this is the only place that pixelates private parts.
package jpegimage

import (
	"image"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Pixels are an image in memory, rows without padding. The zero value has none.
type Pixels struct {
	Data          []byte
	Width, Height int // of the image
	Format        engine.PixelFormat

	rows int // in Data, fewer than Height after CopySmall

	// Between Lease and Fetch: the frame whose pixels are copied, and the part of it.
	leased  bool
	source  capture.Frame
	pending image.Rectangle

	// Hidden parts, which Encoder.Load pixelates.
	origin  image.Point // of these pixels in the frame
	frame   image.Point // size of the frame
	regions [][]zone.Point
	boxes   []postprocess.Box
}

// Copy takes over a part of a result's frame, with the pixels around it that share colour with it, and returns where the part lies in what
// was copied. It allocates nothing once it has seen the largest one. Only images in a GPU's memory can fail.
func (p *Pixels) Copy(in *pipeline.Result, part image.Rectangle) (image.Rectangle, error) {
	part, copied := p.describe(in, part)
	source := in.Frame.Image()
	p.grow(source.PartBytes(copied))
	_, err := source.CopyPart(p.Data, copied)
	return part.Sub(copied.Min), err
}

// Lease is Copy for the frame loop: it leaves the copying to Fetch, which another goroutine must call within milliseconds. A frame that
// cannot be kept so long is copied at once.
func (p *Pixels) Lease(in *pipeline.Result, part image.Rectangle) (image.Rectangle, error) {
	if !in.Frame.Hold() {
		return p.Copy(in, part)
	}
	part, copied := p.describe(in, part)
	p.leased, p.source, p.pending = true, *in.Frame, copied
	return part.Sub(copied.Min), nil
}

// LeaseSmall is CopySmall as Lease is Copy.
func (p *Pixels) LeaseSmall(in *pipeline.Result, width int) error {
	source := in.Frame.Image()
	if source.OnDevice() {
		return p.CopySmall(in, width)
	}
	_, err := p.Lease(in, image.Rect(0, 0, source.Width, source.Height))
	return err
}

// Fetch copies what Lease has left, and returns the frame to its camera.
func (p *Pixels) Fetch() {
	if !p.leased {
		return
	}
	source := p.source.Image()
	p.grow(source.PartBytes(p.pending))
	_, _ = source.CopyPart(p.Data, p.pending) // only a GPU's memory can fail, which is not leased
	p.source.EndHold()
	p.leased, p.source, p.pending = false, capture.Frame{}, image.Rectangle{}
}

// describe takes over everything but the pixels of a part. It returns the part within the frame, and what of the frame is copied for it.
func (p *Pixels) describe(in *pipeline.Result, part image.Rectangle) (inFrame, copied image.Rectangle) {
	whole := image.Rect(0, 0, in.Frame.Width, in.Frame.Height)
	part = part.Intersect(whole)
	copied = part
	if in.Frame.Format == engine.NV12 || in.Frame.Format == engine.YUYV {
		copied = image.Rect(part.Min.X&^1, part.Min.Y&^1, (part.Max.X+1)&^1, (part.Max.Y+1)&^1).Intersect(whole)
	}
	p.Width, p.Height = copied.Dx(), copied.Dy()
	p.rows, p.Format = copied.Dy(), in.Frame.Format
	p.origin, p.frame = copied.Min, whole.Max
	p.regions, p.boxes = nil, p.boxes[:0]
	if in.Hidden != nil {
		p.regions = in.Hidden.Regions
		p.boxes = append(p.boxes, in.Hidden.Boxes...)
	}
	return part, copied
}

// CopySmall takes over a result's frame that will be shrunk to a width in pixels, 0 for any. Of a much wider one in a GPU's memory only
// some rows are copied, unless something in it is hidden. It is otherwise as Copy.
func (p *Pixels) CopySmall(in *pipeline.Result, width int) error {
	source := in.Frame.Image()
	step := 1
	if width > 0 && source.OnDevice() && in.Hidden == nil {
		step = max(1, min(source.Width/width, source.Height/2))
	}
	if step == 1 {
		_, err := p.Copy(in, image.Rect(0, 0, source.Width, source.Height))
		return err
	}
	rows := source.RowsOf(step)
	p.grow(source.Format.RowBytes(source.Width) * source.Format.Rows(rows))
	p.Width, p.Height = source.Width, source.Height
	p.rows, p.Format = rows, source.Format
	p.regions, p.boxes = nil, p.boxes[:0]
	_, err := source.CopyEvery(p.Data, step)
	return err
}

// grow makes Data that many bytes long, in new memory if it was never so long.
func (p *Pixels) grow(size int) {
	if cap(p.Data) < size {
		p.Data = make([]byte, size)
	}
	p.Data = p.Data[:size]
}

// Bounds returns all of the image.
func (p *Pixels) Bounds() image.Rectangle { return image.Rect(0, 0, p.Width, p.Height) }
