// Package device is what computes: the GPUs or the CPU of a run, each with its predictor and the frame loop that keeps it busy, how cameras
// are dealt out to them, and the engine plans that they change to while they run.
package device

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device/lending"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Device is a GPU or the CPU as it looks at cameras in one way: its predictor, the frame loop that keeps it busy, and the memory that it
// lends them. Cameras that are looked at otherwise, or with another model, have a Device of their own on the same hardware; they take
// turns.
type Device struct {
	*pipeline.Pipeline
	Memory lending.Memory
	Notify *capture.Wakeup // rung when a camera of the device has a frame

	view    *config.Config // as network.Views gives it
	group   *group
	options predict.Options
	running atomic.Pointer[predict.Predictor] // that the frame loop goes on with; Upgrade may replace it
	fitted  bool                              // it was opened in the shape of its cameras' images
	quick   bool                              // it began with a plan of little effort
	refined bool                              // it runs the plan of full effort; upgrade goroutine only
}

// Running is what runs on the device now.
func (d *Device) Running() predict.Predictor { return *d.running.Load() }

// Use puts a predictor in place, whose memory cameras get from now on.
func (d *Device) Use(p predict.Predictor) {
	d.running.Store(&p)
	d.Memory.Lend(p)
}

// Seen are the names of the cameras that a run began with on the device.
func (d *Device) Seen() (names []string) {
	for i := range d.view.Cameras {
		names = append(names, d.view.Cameras[i].Name)
	}
	return names
}

// SeesAs reports whether another device looks at its cameras with the same network in the same way.
func (d *Device) SeesAs(other *Device) bool { return d.view == other.view }

// Fit gives the shape that the device's network would be opened in for images of these sizes, which are those of all cameras that are
// seen as the device's are, and whether it runs in that one. A network whose shape is not the cameras' fits any.
func (d *Device) Fit(sizes []engine.Size) (shape engine.Size, fits bool) {
	m := d.Running().Model()
	if !d.fitted || len(sizes) == 0 {
		return engine.Size{Width: m.Width, Height: m.Height}, true
	}
	o := engine.Options{Sources: sizes}
	shape.Width, shape.Height = o.Sides(m.Metadata)
	return shape, shape == engine.Size{Width: m.Width, Height: m.Height}
}

// Sees says what looks at the device's cameras.
func (d *Device) Sees() string {
	text := d.Running().Model().Path
	if tile := d.view.Inference.Tile; tile > 0 {
		text += fmt.Sprintf(" in tiles of %d", tile)
	}
	if looks := d.view.Inference.Augment; len(looks) > 0 {
		text += " with " + strings.Join(looks, ", ")
	}
	return text
}

// Decoding is how the device's outputs are read with a configuration, which has a view like its own.
func (d *Device) Decoding(c *config.Config) predict.Decoding {
	view := d.view
	for _, other := range network.Views(c) {
		if network.Same(d.view, other) {
			view = other
		}
	}
	return network.Decoding(view, Decoded(view))
}

// onTensorRT reports whether TensorRT runs all that looks.
func (d *Device) onTensorRT() bool {
	return !slices.ContainsFunc(predict.Networks(d.Running()), func(n *predict.Network) bool {
		return n.Model().Backend != tensorrt.Name
	})
}
