package outputs

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// page returns the State that the page shows. It implements web.Source.
type page func() *state.State

// Status implements web.Source.
func (p page) Status() web.Status { return pageStatus(p()) }

// pageStatus returns a State as the page, the metrics and the readiness check have it.
func pageStatus(s *state.State) web.Status {
	model := &s.Model
	status := web.Status{
		Device: s.Device, Version: s.Version, Started: s.Started, Opening: s.Opening,
		Engine: web.Engine{Model: model.Path, Reason: notOpen, Progress: s.Opening},
	}
	if s.Outputs.MQTT != nil {
		status.Broker = brokerState(s)
	}
	if s.Opening != "" {
		return status
	}
	status.Engine = web.Engine{
		Backend: model.Backend, Version: model.BackendVersion, Reason: model.Reason + s.Servers.Trouble() + secondaryTrouble(s),
		Device: model.Device, Model: model.Path, Task: string(model.Recognised.Task), Head: model.Recognised.String(),
		Precision: string(model.Precision), Width: model.Width, Height: model.Height, MaxBatch: model.MaxBatch,
		Labels: model.Metadata.Labels, Inference: s.Inference, Progress: s.Upgrade.Text,
	}
	if s.Accuracy != nil {
		status.Engine.Accuracy = accuracy.Summary(s.Accuracy)
	}
	for i := range s.Cameras {
		status.Cameras = append(status.Cameras, shownCamera(&s.Cameras[i]))
	}
	status.FrameMemory = s.FrameMemory
	status.Stages = web.Stages(s.Stages)
	status.Readings = readings(s.Sensors)
	status.Servers = shownServers(s.Servers)
	status.Secondary = shownSecondary(s.Secondary)
	status.Runtime = web.Runtime{
		Processors: s.Runtime.Processors, GC: s.Runtime.GC, MemoryLimit: s.Runtime.LimitText, Capture: s.Runtime.Capture,
	}
	if s.Reload != nil {
		status.Reload.At = s.Reload.At
		if s.Reload.Err != nil {
			status.Reload.Error = s.Reload.Err.Error()
		}
	}
	status.Operation = shownOperation(s)
	status.EventStore, status.Webhooks, status.Upload = s.Outputs.Store, s.Outputs.Webhooks, s.Outputs.Upload
	status.Verify, status.Update, status.Samples = s.Outputs.Verify, s.Update, s.Outputs.Samples
	status.Clips = shownClips(s)
	if s.Outputs.MQTT != nil {
		accounting := &s.Outputs.MQTT.Accounting
		status.Queues = []web.Queue{
			queue("detections", accounting.Detections), queue("state", accounting.State), queue("events", accounting.Events),
		}
	}
	return status
}

func shownCamera(c *state.Camera) web.Camera {
	camera := web.Camera{
		Capture: c.Capture, Silence: c.Site.Stall, Pipeline: c.Totals, Hardware: c.Hardware, Model: c.ModelText, Tracked: c.Tracked,
		Settings: web.Settings{
			Detect: c.Site.Settings.Detect, Threshold: c.Site.Settings.Confidence, Interval: c.Site.Settings.Interval,
			Labels: c.Site.Settings.Classes,
		},
	}
	if c.Model != nil {
		camera.Labels, camera.Points = c.Model.Metadata.Labels, c.Model.Recognised.KeypointNames()
	}
	if c.Tracked {
		camera.Analytics = c.Analytics
	}
	return camera
}

// shownOperation returns how the daemon does besides its frames.
func shownOperation(s *state.State) web.Operation {
	op := web.Operation{Restarts: s.Restarts, Watchdog: s.Watchdog, Certificates: []web.Certificate{}}
	for _, c := range s.Outputs.Certificates {
		op.Certificates = append(op.Certificates, web.Certificate(c))
	}
	if h := s.Outputs.MQTT; h != nil {
		op.Delivery = &web.Delivery{
			Connected: h.Connection.Connected, Since: h.Connection.Since, Connects: h.Connects, Repeats: h.Repeats, LargestPacket: h.Largest,
			TooLarge: h.Oversize.Messages, SpoolBytes: h.Events.Bytes, SpoolOldest: h.Events.Oldest, SpoolFailures: h.Events.Failures,
			SpoolLost: h.Events.Lost,
		}
	}
	if b := s.Outputs.Embedded; b != nil {
		op.Embedded = &web.EmbeddedBroker{
			Connections: b.Connections, Refused: b.Refused, Panics: b.Panics, RetainedMessages: b.RetainedMessages, RetainedBytes: b.RetainedBytes,
			NotRetained: b.NotRetained, Sessions: b.Sessions, EvictedSessions: b.EvictedSessions,
			QueuedBytes: b.QueuedBytes, RemovedSessions: b.RemovedSessions, Undelivered: b.Undelivered, Delayed: b.Delayed,
		}
	}
	return op
}

// shownClips returns the state of the recorder, nil if there is none.
func shownClips(s *state.State) *web.Clips {
	r := s.Outputs.Clips
	if r == nil {
		return nil
	}
	clips := &web.Clips{
		Error: r.Reason, Clips: r.Clips, Bytes: r.Bytes, MaxBytes: r.MaxBytes, Recorded: r.Recorded, Failures: r.Failures, Missed: r.Missed,
		Suppressed: r.Suppressed, SlowestWrite: r.Slowest,
	}
	for i := range s.Cameras {
		name := s.Cameras[i].Capture.Name
		if now, found := r.Cameras[name]; found {
			clips.Cameras = append(clips.Cameras, web.CameraClips{
				Camera: name, Recording: now.Recording, Error: now.Reason, Skipped: now.Skipped,
			})
		}
	}
	return clips
}

// shownServers is the page's form of the servers that run the network, nil for a local one.
func shownServers(s *state.Servers) *web.Servers {
	if s == nil {
		return nil
	}
	shown := &web.Servers{Retries: s.Retries, Answers: s.Answers, All: []web.RemoteServer{}}
	if s.Standby != nil {
		shown.Local, shown.LocalRequests, shown.Changes = s.Standby.Local, s.Standby.Requests, s.Standby.Changes
	}
	for _, server := range s.Servers {
		shown.All = append(shown.All, web.RemoteServer{
			Address: server.Address, Healthy: server.Healthy, Reason: server.Reason, Since: server.Since, Version: server.Version,
			Shared: server.Shared, OnGPU: server.OnGPU, Unshared: server.Unshared, Wire: server.Wire, Requests: server.Requests,
			Failures: server.Failures, Suspensions: server.Suspensions, LatencyMS: server.Latency, Sent: server.Sent,
			SentFrame: server.SentFrame, Received: server.Received,
		})
	}
	return shown
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

// secondaryTrouble lists the problems of secondary networks, each preceded by a semicolon; empty if there are none.
func secondaryTrouble(s *state.State) (text string) {
	for _, n := range s.Secondary {
		switch {
		case n.Stuck:
			text += "; secondary network " + n.Name + " hangs: " + n.Error + ", the program restarts at " + s.HangRestart.Format(time.TimeOnly)
		case n.Hangs:
			text += "; secondary network " + n.Name + " hangs: " + n.Error
		case n.Error != "":
			text += "; secondary network " + n.Name + " fails: " + n.Error
		case n.Slow:
			text += "; secondary network " + n.Name + " is too slow: crops are missed"
		}
	}
	return text
}

func queue(name string, a ledger.Account) web.Queue {
	return web.Queue{Name: name, Offered: a.Offered, Delivered: a.Delivered, Superseded: a.Superseded, Dropped: a.Dropped, Queued: a.Queued}
}
