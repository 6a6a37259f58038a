package fleet

import (
	"context"
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// swap has a device and its cameras go on with another predictor.
func (f *Fleet) swap(ctx context.Context, d *device.Device, next predict.Predictor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	waited := d.Waits()
	err := next.Tune(d.Decoding(f.site.Load())) // it may have changed since the predictor was opened
	switch {
	case err != nil:
	case waited:
		err = f.begin(ctx, d, next)
	default:
		err = d.Replace(ctx, next)
		if err == nil {
			d.Use(next)
		}
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	model := next.Model()
	if d == f.devices.All[0] {
		f.recordVerdict(model.Model)
	}
	for _, c := range f.cameras.All() {
		if f.devices.Of(c.Site.Name) == d {
			c.Capture.Reallocate()
		}
	}
	f.Logger.Info("engine replaced", "engine", model.Backend, "device", model.Device, "precision", model.Precision, "model", model.Path)
	return nil
}

// begin makes a device that never had a predictor start with one: its cameras are made for the classes that are known now. An error changes
// nothing.
func (f *Fleet) begin(ctx context.Context, d *device.Device, next predict.Predictor) error {
	own := func(c *camera.Camera) bool { return f.devices.At(c.Capture) == d }
	return d.Try(next, func() error {
		return f.cameras.Renew(own, func(inLoop []pipeline.Camera) error { return d.Start(ctx, next, inLoop) })
	})
}
