package daemon

import (
	"context"
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// swap has a device and its cameras go on with another network.
func (r *run) swap(ctx context.Context, d *device.Device, next *predict.Network) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	err := next.Tune(network.Decoding(r.config, device.Decoded(r.config))) // a reload may have changed it since
	if err == nil {
		err = d.Replace(ctx, next)
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	d.Use(next)
	model := next.Model()
	r.judged(model.Model)
	for _, c := range r.cameras.All() {
		if r.devices.Of(c.Config.Name) == d {
			c.Capture.Reallocate()
		}
	}
	r.logger.Info("engine replaced", "engine", model.Backend, "device", model.Device, "precision", model.Precision)
	return nil
}
