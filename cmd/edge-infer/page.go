package main

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt"
)

// page tells the web page how the run is.
type page struct{ daemon *daemon }

// Status implements web.Source.
func (p page) Status() web.Status {
	d := p.daemon
	model := d.pipeline.Model()
	status := web.Status{
		Device: d.device, Version: release, Started: d.started,
		Engine: web.Engine{
			Backend: model.Backend, Version: model.BackendVersion, Reason: model.Reason, Device: model.Device, Model: model.Path,
			Task: string(model.Metadata.Task), Precision: string(model.Precision), Width: model.Width, Height: model.Height, MaxBatch: model.MaxBatch,
			Labels: model.Metadata.Labels, Inference: d.pipeline.InferenceTime(),
		},
		Readings: d.readings(),
	}
	if v := d.proof.Load(); v != nil {
		status.Engine.Accuracy = proofText(v)
	}
	if c := d.building.Load(); c != nil {
		status.Engine.Progress = c.text
	}
	totals := map[string]pipeline.CameraStats{}
	for _, t := range d.pipeline.Totals() {
		totals[t.Camera] = t
	}
	for _, m := range d.fleet.Members() {
		camera := web.Camera{Capture: m.capture.Stats(), Pipeline: totals[m.config.Name], Hardware: d.pipeline.Device(m.config.Name)}
		if m.place.Follower != nil {
			camera.Tracked, camera.Analytics = true, m.place.Follower.Config
		}
		status.Cameras = append(status.Cameras, camera)
	}
	if d.client != nil {
		accounting := d.client.Accounting()
		status.Queues = []web.Queue{
			queue("detections", accounting.Detections), queue("state", accounting.State), queue("events", accounting.Events),
		}
		status.Broker = brokerState(d.client.Connection())
	}
	return status
}

func queue(name string, a mqtt.Account) web.Queue {
	return web.Queue{Name: name, Offered: a.Offered, Delivered: a.Delivered, Superseded: a.Superseded, Dropped: a.Dropped, Queued: a.Queued}
}
