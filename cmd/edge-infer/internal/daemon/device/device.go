// Package device is what computes: the GPUs or the CPU of a run, each with its predictor and the frame loop that keeps it busy, how cameras
// are dealt out to them, and the engine plans that they change to while they run.
package device

import (
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device/lending"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Device is a GPU or the CPU: its predictor, the frame loop that keeps it busy, and the memory that it lends cameras.
type Device struct {
	*pipeline.Pipeline
	Memory lending.Memory
	Notify chan struct{} // takes a token when a camera of the device has a frame

	options predict.Options
	running atomic.Pointer[predict.Network] // that the frame loop goes on with; Upgrade may replace it
	quick   bool                            // it began with a plan of little effort
	refined bool                            // it runs the plan of full effort; upgrade goroutine only
}

// Network is what runs on the device now.
func (d *Device) Network() *predict.Network { return d.running.Load() }

// Use puts a network in place, whose memory cameras get from now on.
func (d *Device) Use(n *predict.Network) {
	d.running.Store(n)
	d.Memory.Lend(n)
}
