package device

import (
	"context"
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Users returns the devices whose cameras have a model, by its configured name.
func (a *Devices) Users(model string) (all []*Device) {
	for _, d := range a.All {
		if d.group.Network.Model.Path == model {
			all = append(all, d)
		}
	}
	return all
}

// ModelFiles returns the files of the model that runs.
func (d *Device) ModelFiles() judge.Model {
	return judge.Model{Path: d.Running().Model().Path, Labels: d.openingOptions().LabelsFile}
}

// Comparison returns the settings by which the device's model is compared with another one.
func (d *Device) Comparison() judge.Request {
	o := d.openingOptions()
	r := judge.Request{
		Group: *d.group, Running: d.ModelFiles(), Confidence: 1, Backend: d.backend(),
		Device: o.Device, Threads: o.Threads, MaxBatch: o.MaxBatch, Frugal: o.Frugal, Sources: o.Sources,
	}
	for i := range d.group.Cameras {
		r.Confidence = min(r.Confidence, float32(d.group.Cameras[i].Configured.Confidence))
	}
	if r.Sources == nil && o.ProbeSizes != nil {
		r.Sources = o.ProbeSizes()
	}
	return r
}

// backend returns the backend that another file of the model is opened with: TensorRT if it runs, which has its plan built. Otherwise the
// configured one, which chooses as before.
func (d *Device) backend() string {
	if d.onTensorRT() {
		return tensorrt.Name
	}
	return d.prepared.unread.Backend
}

// UseModel has the device go on with another file of its model, now and whenever its network is opened again, with everything else as
// configured. On an error the device goes on as before.
func (s *Set) UseModel(ctx context.Context, d *Device, files judge.Model) error {
	options := d.unreadOptions()
	options.Model, options.ResolveModel = files.Path, nil
	if options.LabelsFile == "" {
		options.LabelsFile = files.Labels
	}
	options.Backend = d.backend()
	next, err := s.openFile(ctx, d, options)
	if err != nil {
		return err
	}
	was, model := d.Running().Model(), next.Model()
	if why := judge.Unsuitable(&was, &model); why != "" {
		return errors.Join(errors.New(why), next.Close())
	}
	before := d.replaced.Swap(&options)
	err = s.Swap(ctx, d, next)
	if err != nil {
		d.replaced.Store(before)
	}
	return err
}

// openFile opens a predictor in an engine of its own. A plan that is missing is built. An opening that does not end with ctx is left alone.
func (s *Set) openFile(ctx context.Context, d *Device, options predict.Options) (predict.Predictor, error) {
	builder := network.PredictorBuilder{Inference: d.group.Network.Inference}
	opening := make(chan opened, 1)
	go func() {
		predictor, err := builder.Open(ctx, options)
		opening <- opened{predictor, err}
	}()
	select {
	case result := <-opening:
		return result.predictor, result.err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), closeLate(opening))
	}
}

// ModelFault returns why the device cannot go on with its model, nil if it can.
func (d *Device) ModelFault() error {
	if d.prepared.unread.IsRemote() {
		return fmt.Errorf("the network of %s runs on servers, which have the model", d.cameras())
	}
	if text := d.faultText(); text != "" {
		return errors.New(text)
	}
	if d.Waits() {
		return fmt.Errorf("the network of %s is not open", d.cameras())
	}
	return nil
}
