package daemon

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
)

// page tells the web page how the run is.
type page struct{ run *run }

// Status implements web.Source.
func (p page) Status() web.Status {
	r := p.run
	model := r.devices.Model()
	status := web.Status{
		Device: r.device, Version: r.Version, Started: r.started,
		Engine: web.Engine{
			Backend: model.Backend, Version: model.BackendVersion, Reason: model.Reason, Device: model.Device, Model: model.Path,
			Task: string(model.Recognised.Task), Head: model.Recognised.String(), Precision: string(model.Precision), Width: model.Width,
			Height: model.Height, MaxBatch: model.MaxBatch,
			Labels: model.Metadata.Labels, Inference: r.devices.InferenceTime(),
		},
		Readings: readings(r.monitor.Latest()), FrameMemory: r.devices.FrameMemory(),
	}
	status.Stages = web.Stages(r.devices.Stages.Totals())
	status.Operation = r.operation()
	status.Runtime = web.Runtime{
		Processors: r.process.Processors, GC: r.process.GC, MemoryLimit: r.process.LimitText(), Capture: r.process.Capture.State(),
	}
	if servers := r.devices.Servers(); servers != nil {
		status.Engine.Reason += servers.Trouble()
		status.Servers = shownServers(servers)
	}
	if last := r.reloaded.Load(); last != nil {
		status.Reload.At = last.at
		if last.err != nil {
			status.Reload.Error = last.err.Error()
		}
	}
	if v := r.verdict.Load(); v != nil {
		status.Engine.Accuracy = accuracy.Summary(v)
	}
	status.Engine.Progress, _ = r.upgrade.Doing()
	totals := map[string]pipeline.CameraStats{}
	for _, t := range r.devices.Totals() {
		totals[t.Camera] = t
	}
	for _, c := range r.cameras.All() {
		camera := web.Camera{
			Capture: c.Capture.Stats(), Silence: c.Site.Stall, Pipeline: totals[c.Site.Name], Hardware: r.devices.Hardware(c.Site.Name),
			Model: r.devices.Describe(c.Site.Name),
		}
		if at := r.devices.Of(c.Site.Name); at != nil {
			m := at.Running().Model()
			camera.Labels, camera.Points = m.Metadata.Labels, m.Recognised.KeypointNames()
		}
		if c.Loop.Tracker != nil {
			camera.Tracked, camera.Analytics = true, c.Loop.Tracker.Config
		}
		status.Cameras = append(status.Cameras, camera)
	}
	if client := r.outputs.client; client != nil {
		accounting := client.Accounting()
		status.Queues = []web.Queue{
			queue("detections", accounting.Detections), queue("state", accounting.State), queue("events", accounting.Events),
		}
		status.Broker = broker.State(client)
	}
	return status
}

func queue(name string, a ledger.Account) web.Queue {
	return web.Queue{Name: name, Offered: a.Offered, Delivered: a.Delivered, Superseded: a.Superseded, Dropped: a.Dropped, Queued: a.Queued}
}
