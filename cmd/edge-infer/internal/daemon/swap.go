package daemon

import (
	"context"
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// swap has a device and its cameras go on with another predictor.
func (f *fleet) swap(ctx context.Context, d *device.Device, next predict.Predictor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := next.Tune(d.Decoding(&f.site)) // it may have changed since the predictor was opened
	if err == nil {
		err = d.Replace(ctx, next)
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	d.Use(next)
	model := next.Model()
	if d == f.devices.All[0] {
		f.recordVerdict(model.Model)
	}
	for _, c := range f.cameras.All() {
		if f.devices.Of(c.Site.Name) == d {
			c.Capture.Reallocate()
		}
	}
	f.logger.Info("engine replaced", "engine", model.Backend, "device", model.Device, "precision", model.Precision, "model", model.Path)
	return nil
}
