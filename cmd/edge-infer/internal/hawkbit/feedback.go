package hawkbit

import (
	"fmt"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// feedbackStatus is how far an action or a cancellation is.
type feedbackStatus struct {
	Execution string         `json:"execution"` // proceeding or closed
	Result    feedbackResult `json:"result"`
	Details   []string       `json:"details"` // lines for a person
}

type feedbackResult struct {
	Finished string `json:"finished"` // none, success or failure
}

// success ends an action or a cancellation well.
func success(detail string) feedbackStatus { return closed("success", detail) }

func closed(finished, detail string) feedbackStatus {
	return feedbackStatus{Execution: "closed", Result: feedbackResult{finished}, Details: []string{detail}}
}

// feedbackOf returns the report of a job in the server's form. Its status for what a device does not try, rejected, leaves an action open:
// here that is a failure too.
func feedbackOf(report *payload.JobUpdate) feedbackStatus {
	d := &report.Details
	text := d.Reason
	switch {
	case text == "" && d.Version > 0:
		text = fmt.Sprintf("%s version %d is installed", d.Model, d.Version)
	case text == "":
		text = d.Phase
	}
	if d.Agreement != nil {
		text += fmt.Sprintf(" (%.3f agreement with the model before)", *d.Agreement)
	}
	switch report.Status {
	case payload.JobSucceeded:
		return success(text)
	case payload.JobFailed, payload.JobRejected, payload.JobCanceled:
		return closed("failure", text)
	}
	text = d.Phase
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return feedbackStatus{Execution: "proceeding", Result: feedbackResult{"none"}, Details: []string{text}}
}
