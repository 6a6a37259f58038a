package daemon

import (
	"context"
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// swap has a device and its cameras go on with another predictor.
func (r *run) swap(ctx context.Context, d *device.Device, next predict.Predictor) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.setting.Lock()
	defer r.setting.Unlock()
	err := next.Tune(d.Decoding(&r.site)) // it may have changed since the predictor was opened
	if err == nil {
		err = d.Replace(ctx, next)
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	d.Use(next)
	model := next.Model()
	if d == r.devices.All[0] {
		r.judged(model.Model)
	}
	for _, c := range r.cameras.All() {
		if r.devices.Of(c.Site.Name) == d {
			c.Capture.Reallocate()
		}
	}
	r.logger.Info("engine replaced", "engine", model.Backend, "device", model.Device, "precision", model.Precision, "model", model.Path)
	return nil
}
