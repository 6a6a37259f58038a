package daemon

import (
	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// page is the state of the run for the web page.
type page struct{ *outputs }

// Status implements web.Source.
func (o page) Status() web.Status {
	model := o.groups.Model()
	status := web.Status{
		Device: o.device, Version: o.version, Started: o.started,
		Engine: web.Engine{
			Backend: model.Backend, Version: model.BackendVersion, Reason: model.Reason, Device: model.Device, Model: model.Path,
			Task: string(model.Recognised.Task), Head: model.Recognised.String(), Precision: string(model.Precision), Width: model.Width,
			Height: model.Height, MaxBatch: model.MaxBatch,
			Labels: model.Metadata.Labels, Inference: o.groups.InferenceTime(),
		},
		Readings: readings(o.sensorReadings()), FrameMemory: o.groups.FrameMemory(),
	}
	status.Stages = web.Stages(o.stages.Totals())
	status.Operation = o.operation()
	status.Clips = o.clips()
	status.Webhooks = o.webhookStatus()
	status.Upload = o.uploadStatus()
	status.Runtime = web.Runtime{
		Processors: o.process.Processors, GC: o.process.GC, MemoryLimit: o.process.LimitText(), Capture: o.process.Capture.State(),
	}
	if o.store != nil {
		stored := o.store.Stats()
		status.EventStore = &stored
	}
	if servers := o.groups.Servers(); servers != nil {
		status.Engine.Reason += servers.Trouble()
		status.Servers = shownServers(servers)
	}
	if last := o.reloaded(); last != nil {
		status.Reload.At = last.at
		if last.err != nil {
			status.Reload.Error = last.err.Error()
		}
	}
	if v := o.verdict(); v != nil {
		status.Engine.Accuracy = accuracy.Summary(v)
	}
	secondary := o.secondary()
	status.Secondary = shownSecondary(secondary)
	status.Engine.Reason += secondaryTrouble(secondary)
	status.Engine.Progress, _ = o.upgrade()
	totals := map[string]pipeline.CameraStats{}
	for _, t := range o.groups.Totals() {
		totals[t.Camera] = t
	}
	for _, c := range o.cameras.All() {
		camera := web.Camera{
			Capture: c.Capture.Stats(), Silence: c.Site.Stall, Pipeline: totals[c.Site.Name], Hardware: o.groups.Hardware(c.Site.Name),
			Model: o.groups.Describe(c.Site.Name),
		}
		if at := o.groups.Of(c.Site.Name); at != nil {
			m := at.Running().Model()
			camera.Labels, camera.Points = m.Metadata.Labels, m.Recognised.KeypointNames()
		}
		if c.Loop.Tracker != nil {
			camera.Tracked, camera.Analytics = true, c.Loop.Tracker.Config
		}
		status.Cameras = append(status.Cameras, camera)
	}
	if client := o.client; client != nil {
		accounting := client.Accounting()
		status.Queues = []web.Queue{
			queue("detections", accounting.Detections), queue("state", accounting.State), queue("events", accounting.Events),
		}
		status.Broker = broker.State(client)
	}
	return status
}

// shownSecondary returns the state of secondary networks as the API has it.
func shownSecondary(all []cascade.Stats) (shown []web.SecondaryNetwork) {
	for _, s := range all {
		shown = append(shown, web.SecondaryNetwork{
			Name: s.Name, Crops: s.Crops, Failed: s.Failed, Missed: s.Missed, Hangs: s.Hangs, Slow: s.Slow, Last: s.Last, Error: s.Error,
		})
	}
	return shown
}

// units returns the newest access units of a camera; nil if it has none.
func (o *outputs) units(name string) *capture.Ring {
	for _, c := range o.cameras.All() {
		if c.Site.Name == name {
			return c.Ring()
		}
	}
	return nil
}

func queue(name string, a ledger.Account) web.Queue {
	return web.Queue{Name: name, Offered: a.Offered, Delivered: a.Delivered, Superseded: a.Superseded, Dropped: a.Dropped, Queued: a.Queued}
}
