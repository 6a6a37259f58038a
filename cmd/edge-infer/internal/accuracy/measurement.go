package accuracy

import (
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// newMeasurement describes what runs, without what it was measured to be.
func newMeasurement(model *predict.Model, bytes int) Measurement {
	return Measurement{
		Model: model.Path, Backend: model.Backend, BackendVersion: model.BackendVersion, Device: model.Device, Precision: model.Precision,
		task: model.Recognised.Task, width: model.Width, height: model.Height,
		Image: predict.Describe(*model).Preprocessing, Bytes: bytes,
	}
}

// clocks are how long requests took, and the network in them.
type clocks struct{ requests, networks []time.Duration }

func (c *clocks) add(t engine.Timing) {
	c.requests = append(c.requests, time.Duration(t.Done-t.Submitted))
	c.networks = append(c.networks, time.Duration(t.Inference))
}

// medians are in milliseconds.
func (c *clocks) medians() (request, network float64) {
	return milliseconds(median(c.requests)), milliseconds(median(c.networks))
}
