// Package device opens the predictors of camera groups on GPUs or the CPU, assigns cameras to them, runs their frame loops, and replaces
// predictors by better ones while they run.
package device

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device/lending"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Device is the predictor of a camera group on one GPU or the CPU, with its frame loop and the memory that it lends to cameras. Groups on
// the same hardware have a Device each; their requests run side by side.
type Device struct {
	*pipeline.Pipeline
	Memory lending.Memory
	Notify *capture.Wakeup // signalled when a camera of the device has a frame

	group       *site.Group
	prepared    *prepared
	engines     *sharedEngines
	own         predict.Options                   // of this device alone
	options     predict.Options                   // with what the groups have in common that share its engines
	running     atomic.Pointer[predict.Predictor] // Upgrade may replace it
	openNetwork opener
	opening     chan opened                     // the first predictor, if it was not open when the cameras started
	abandoned   atomic.Int32                    // calls into predictors that have not returned
	late        bool                            // the first predictor was not opened at the start; set by Set.Open
	refined     bool                            // it runs the fully optimized plan; upgrade goroutine only
	replaced    atomic.Pointer[predict.Options] // of the file that took the place of the configured model; nil for none
	fault       fault
}

// GPU returns the number of the GPU that the group was given, also if it runs on the CPU.
func (d *Device) GPU() int { return d.options.Device }

// Running returns the predictor in use.
func (d *Device) Running() predict.Predictor { return *d.running.Load() }

// Use sets the predictor in use; cameras get their memory from it from now on.
func (d *Device) Use(p predict.Predictor) {
	d.running.Store(&p)
	d.Memory.Lend(p)
}

// hold keeps the predictor open in which the frame loop has abandoned a call, until returned is called.
func (d *Device) hold() (returned func()) {
	d.abandoned.Add(1)
	release := d.Memory.Hold()
	return func() {
		release()
		d.abandoned.Add(-1)
	}
}

// cameras returns the cameras that the group was opened with, for messages.
func (d *Device) cameras() string { return strings.Join(d.CameraNames(), " ") }

// Try makes a predictor the one in use if start, which may ask for it, succeeds.
func (d *Device) Try(next predict.Predictor, start func() error) error {
	before := d.Running()
	d.running.Store(&next)
	if err := start(); err != nil {
		d.running.Store(&before)
		return err
	}
	d.Memory.Lend(next)
	return nil
}

// CameraNames returns the cameras that the group was opened with.
func (d *Device) CameraNames() (names []string) {
	for i := range d.group.Cameras {
		names = append(names, d.group.Cameras[i].Name)
	}
	return names
}

// SameGroup reports whether another device runs the network of the same camera group.
func (d *Device) SameGroup(other *Device) bool { return d.group == other.group }

// Fit returns the input shape for images of these sizes, which must be those of all cameras of the group, and reports whether the network
// has that shape. A network whose input shape does not depend on the cameras always fits.
func (d *Device) Fit(sizes []engine.Size) (shape engine.Size, fits bool) {
	m := d.Running().Model()
	if !d.prepared.fitted || d.Waits() || len(sizes) == 0 {
		return engine.Size{Width: m.Width, Height: m.Height}, true
	}
	o := engine.Options{Sources: sizes}
	shape.Width, shape.Height = o.Sides(m.Metadata)
	return shape, shape == engine.Size{Width: m.Width, Height: m.Height}
}

// Describe returns the model with its tiles and augmentations.
func (d *Device) Describe() string {
	text := d.Running().Model().Path
	if tile := d.group.Network.Inference.Tile; tile > 0 {
		text += fmt.Sprintf(" in tiles of %d", tile)
	}
	if views := d.group.Network.Inference.Augment; len(views) > 0 {
		text += " with " + strings.Join(views, ", ")
	}
	return text
}

// Decoding returns how a site reads the outputs of the device's network.
func (d *Device) Decoding(s *site.Site) predict.Decoding {
	group := s.Group(&d.group.Network)
	if group == nil {
		group = d.group
	}
	return network.Decoding(group)
}

// openingOptions returns the options for another predictor. A device that started without one has its model file read again, which may have
// been replaced meanwhile.
func (d *Device) openingOptions() predict.Options {
	if replaced := d.replaced.Load(); replaced != nil {
		return *replaced
	}
	if !d.late {
		return d.options
	}
	return d.unreadOptions()
}

// unreadOptions returns the options of the device before the model file was read.
func (d *Device) unreadOptions() predict.Options {
	options := d.prepared.unread
	options.Device = d.options.Device
	options.Threads = d.options.Threads
	options.MaxBatch = d.options.MaxBatch
	options.Frugal = d.options.Frugal
	options.Decoding = d.options.Decoding
	return options
}

// onTensorRT reports whether all networks of the predictor run on TensorRT.
func (d *Device) onTensorRT() bool {
	return !slices.ContainsFunc(predict.Networks(d.Running()), func(n *predict.Network) bool {
		return n.Model().Backend != tensorrt.Name
	})
}
