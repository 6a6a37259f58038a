package source

import (
	"context"
	"io"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
)

// Defaults of the demo camera.
const (
	demoWidth  = 1280
	demoHeight = 720
	demoRate   = 30
)

// demo renders a conveyor belt. Each frame carries its ground truth.
type demo struct {
	ctx    context.Context
	uri    capture.URI
	scene  scene.Scene
	parts  []scene.Part
	next   int
	closed bool
}

func openDemo(ctx context.Context, u capture.URI) (capture.Source, error) {
	d := &demo{ctx: ctx, uri: u, scene: scene.Scene{Width: demoWidth, Height: demoHeight, Rate: demoRate, Seed: uint64(u.Seed)}}
	if u.Width > 0 {
		d.scene.Width, d.scene.Height = u.Width, u.Height
	}
	if u.FPS > 0 {
		d.scene.Rate = u.FPS
	}
	if err := d.scene.Open(); err != nil {
		return nil, u.NewError("open", capture.ErrURI, "", "", err)
	}
	return d, nil
}

func (d *demo) Live() bool   { return false }
func (d *demo) FPS() float64 { return d.scene.Rate }

// Next implements capture.Source.
func (d *demo) Next(lend capture.Lender) (capture.Frame, error) {
	if err := d.ctx.Err(); err != nil {
		return capture.Frame{}, err
	}
	if d.closed || d.uri.Frames > 0 && d.next >= d.uri.Frames {
		return capture.Frame{}, io.EOF
	}
	number := d.next
	d.next++
	f, err := lend.Frame(engine.BGR, d.scene.Width, d.scene.Height)
	if err != nil {
		return capture.Frame{}, err
	}
	f.Seq, f.Captured, f.Time = uint64(number), capture.Monotonic(), time.Now()
	d.parts, err = d.scene.Draw(number, f.Data, f.Stride, d.parts[:0])
	if err != nil {
		f.Release()
		return capture.Frame{}, d.uri.NewError("read", capture.ErrUnavailable, "", "", err)
	}
	f.SetTruthLen(len(d.parts))
	for i, part := range d.parts {
		f.Truth[i] = capture.Object{
			ID: part.ID, Label: part.Class.String(), Class: int(part.Class), Visible: float32(part.Visible),
			Box: [4]float32{float32(part.X0), float32(part.Y0), float32(part.X1), float32(part.Y1)},
		}
	}
	return f, nil
}

// Close implements capture.Source.
func (d *demo) Close() error {
	d.closed = true
	return nil
}
