package accuracy

import (
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// newMeasurement describes a model without its results.
func newMeasurement(model *predict.Model, bytes int) Measurement {
	return Measurement{
		Model: model.Path, Backend: model.Backend, BackendVersion: model.BackendVersion, Device: model.Device, Precision: model.Precision,
		task: model.Recognised.Task, width: model.Width, height: model.Height,
		Image: predict.Describe(*model).Preprocessing, Bytes: bytes,
	}
}

// clocks holds the durations of requests and of inference.
type clocks struct{ requests, networks []time.Duration }

func (c *clocks) add(t engine.Timing) {
	c.requests = append(c.requests, time.Duration(t.Done-t.Submitted))
	c.networks = append(c.networks, time.Duration(t.Inference))
}

// medians returns milliseconds.
func (c *clocks) medians() (request, network float64) {
	return milliseconds(median(c.requests)), milliseconds(median(c.networks))
}
