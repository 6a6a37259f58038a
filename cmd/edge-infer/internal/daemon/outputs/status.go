package outputs

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// statusPayload returns the payload of the status topic.
func statusPayload(s *state.State) *payload.Status {
	status := &payload.Status{Version: s.Version, Started: s.Started, Model: s.Model.Path}
	if s.Opening != "" {
		status.Reason = notOpen + ": " + s.Opening
		return status
	}
	status.Backend = s.Model.Backend
	status.Reason = s.Model.Reason + trouble(s)
	status.Hardware = s.Model.Device
	status.Head = s.Model.Recognised.String()
	status.Precision = string(s.Model.Precision)
	status.Accuracy = accuracyStatus(s.Accuracy)
	status.Runtime = payload.Runtime{
		Processors: s.Runtime.Processors, GC: s.Runtime.GC, MemoryLimit: s.Runtime.MemoryLimit, Capture: s.Runtime.Capture,
	}
	if s.Reload != nil && s.Reload.Err != nil {
		status.ConfigurationError = s.Reload.Err.Error()
	}
	status.Update = updateStatus(s.Update)
	for i := range s.Cameras {
		status.Cameras = append(status.Cameras, cameraStatus(&s.Cameras[i]))
	}
	return status
}

// updateStatus is the MQTT status' form of model updates.
func updateStatus(u *update.Status) *payload.Update {
	if u == nil {
		return nil
	}
	status := &payload.Update{
		Model: u.Model, Version: u.Version, Phase: string(u.Phase), Candidate: u.Candidate, Error: cmp.Or(u.Error, u.ServerError),
	}
	if u.Last != nil {
		status.Agreement = u.Last.Agreement
		if !u.Last.Installed() {
			status.Refused, status.Reason = u.Last.Version, u.Last.Reason
		}
	}
	return status
}

// notOpen is the reason while the run is being opened.
const notOpen = "nothing runs the model yet"

func cameraStatus(c *state.Camera) payload.CameraStatus {
	now := &c.Capture
	status := payload.CameraStatus{
		Name: now.Name, State: string(now.State), Error: now.Reason, Hardware: c.Hardware, Since: now.Since, Slowdown: c.Totals.Slowdown,
		Model: c.ModelText, RecordError: now.Record.Problem(),
	}
	if status.Error == "" && !c.Leaving {
		status.Error = c.NoClasses
	}
	if status.Error == "" {
		status.Error = c.Totals.Error
	}
	if now.State != capture.Running {
		status.Last, status.NextTry, status.Tries = now.LastImage, now.NextTry, now.Tries
	}
	return status
}

// trouble lists the problems of a run, each preceded by a semicolon, for the status' reason; empty if there are none.
func trouble(s *state.State) string {
	var all strings.Builder
	add := func(text, problem string) {
		if problem != "" {
			all.WriteString("; " + text + problem)
		}
	}
	if s.Upgrade.Failed {
		add("", s.Upgrade.Text)
	}
	if s.Update != nil {
		add("", s.Update.Trouble())
	}
	all.WriteString(s.Servers.Trouble())
	all.WriteString(secondaryTrouble(s))
	o := &s.Outputs
	if o.Store != nil {
		add("events are not stored: ", o.Store.Error)
	}
	if o.MQTT != nil {
		add("another machine has the same name: ", o.MQTT.Connection.Conflict)
	}
	if o.Clips != nil {
		add("no clips are recorded: ", o.Clips.Reason)
		for i := range s.Cameras {
			if name := s.Cameras[i].Capture.Name; o.Clips.Reason == "" {
				add("no clips of "+name+": ", o.Clips.Cameras[name].Reason)
			}
		}
	}
	for _, w := range o.Webhooks {
		if w.Disabled {
			add("webhook "+w.Name+" is disabled: ", "its receiver has answered 410 Gone")
			continue
		}
		add("webhook "+w.Name+" cannot deliver: ", w.Error)
	}
	if o.Verify != nil {
		add("events are not verified: ", o.Verify.Error)
	}
	if o.Samples != nil {
		add("frames are not kept for labelling: ", o.Samples.Error)
	}
	if o.Upload != nil {
		add("clips and snapshots are not uploaded: ", o.Upload.Error)
	}
	return all.String()
}

// PublishStatus publishes the status if it differs from the previous one. Watch goroutine only.
func (o *Outputs) PublishStatus(s *state.State) {
	if o.client == nil {
		return
	}
	status := statusPayload(s)
	now := fmt.Sprint(status.Cameras, status.Backend, status.Reason, status.Accuracy != nil, status.ConfigurationError,
		s.Outputs.MQTT.Oversize.Messages)
	if u := status.Update; u != nil {
		now += fmt.Sprint(u.Model, u.Version, u.Phase, u.Candidate, u.Error, u.Refused)
	}
	if now != o.published {
		o.published = now
		o.client.Status(status)
	}
}

// accuracyStatus is the MQTT status' form of a verdict.
func accuracyStatus(v *quantize.Verdict) *payload.Accuracy {
	if v == nil {
		return nil
	}
	c := &v.Comparison
	a := &payload.Accuracy{
		Precision: string(v.Precision), Passed: v.Passed, MatchRate: c.MatchRate, Boxes: c.Reference, Flipped: c.Flipped, Images: c.Images,
		Time: v.Time,
	}
	if c.ReferenceAccuracy != nil && c.CandidateAccuracy != nil {
		a.Labelled, a.MAP50, a.MAP = true, c.CandidateAccuracy.MAP50, c.CandidateAccuracy.MAP
		a.ReferenceMAP50, a.ReferenceMAP = c.ReferenceAccuracy.MAP50, c.ReferenceAccuracy.MAP
	}
	for _, refused := range v.Refused {
		a.Refused = append(a.Refused, payload.RefusedPrecision{Precision: string(refused.Precision), Reasons: refused.Reasons})
	}
	return a
}
