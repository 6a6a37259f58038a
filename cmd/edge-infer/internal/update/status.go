package update

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
)

// Phase is what an updater is doing.
type Phase string

// The phases, in their order.
const (
	Current     Phase = "current"     // nothing newer is known
	Downloading Phase = "downloading" // or asking for a newer version
	Collecting  Phase = "collecting"  // images of the cameras are collected for the comparison
	Judging     Phase = "judging"     // the new model is compared with the running one
	Trial       Phase = "trial"       // the new model runs, and is replaced if something is wrong
)

// Status is the state of model updates. It holds no secrets.
type Status struct {
	Source string `json:"source"` // where bundles come from, without a login or query
	Model  string `json:"model,omitempty"`
	// Version is that of the installed bundle, 0 if the model does not come from one.
	Version int64  `json:"version"`
	Phase   Phase  `json:"phase"`
	Doing   string `json:"doing,omitempty"` // progress in the phase
	// Candidate is the version that is being installed, 0 for none.
	Candidate int64 `json:"candidate,omitempty"`
	// Job is the job that is being done, empty for none.
	Job string `json:"job,omitempty"`
	// Server is the update server that gives jobs, empty for none, and ServerError why it was not reached.
	Server      string `json:"server,omitempty"`
	ServerError string `json:"server_error,omitempty"`
	// Checked is when the source was asked last, zero before.
	Checked time.Time `json:"checked,omitzero"`
	// Error is why the source has given no bundle, empty if it has.
	Error string `json:"error,omitempty"`
	// Last is how the newest bundle fared that was tried on this device; nil for none.
	Last *Outcome `json:"last,omitempty"`
}

// Outcome is how a bundle has fared.
type Outcome struct {
	Digest  string    `json:"digest"` // of its manifest
	Model   string    `json:"model"`
	Version int64     `json:"version"`
	Reason  string    `json:"reason,omitempty"` // why it was refused; empty if it was installed
	At      time.Time `json:"at"`
	// Agreement is the match rate with the model before on images of the cameras, nil if it was not measured.
	Agreement *float64 `json:"agreement,omitempty"`
	Boxes     int      `json:"boxes,omitempty"`  // that the model before found in them
	Images    int      `json:"images,omitempty"` // compared
	// Labelled is how it and the model before do on the labelled images of its bundle, nil without.
	Labelled *judge.Labelled `json:"labelled,omitempty"`
}

// Installed reports whether the bundle was installed, and not refused.
func (o *Outcome) Installed() bool { return o.Reason == "" }

// Trouble describes what a person should look after; empty for nothing.
func (s *Status) Trouble() string {
	switch {
	case s.Error != "":
		return "models are not updated: " + s.Error
	case s.ServerError != "":
		return "the update server gives no jobs: " + s.ServerError
	case s.Last != nil && !s.Last.Installed():
		return "model " + s.Last.Model + " stays as it is: " + s.Last.Text()
	}
	return ""
}
