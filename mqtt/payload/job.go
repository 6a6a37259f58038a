package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// JobStatus is how far a device has come with a job; the names are those of AWS IoT Jobs.
type JobStatus string

// The statuses. The last four are final.
const (
	JobQueued     JobStatus = "QUEUED"
	JobInProgress JobStatus = "IN_PROGRESS"
	JobSucceeded  JobStatus = "SUCCEEDED"
	JobFailed     JobStatus = "FAILED"   // the device has tried
	JobRejected   JobStatus = "REJECTED" // the device has not tried
	JobCanceled   JobStatus = "CANCELED" // the sender has withdrawn the job
)

// Final reports whether the device does nothing more for the job.
func (s JobStatus) Final() bool { return s != JobQueued && s != JobInProgress }

// The operations of jobs. UpdateModel installs the model bundle of From, whose manifest must have the Digest if that is set. UpdateSettings
// applies Settings, which Signature signs.
const (
	UpdateModel    = "update-model"
	UpdateSettings = "update-settings"
)

// JobDocument says what is to be done.
type JobDocument struct {
	Operation string `json:"operation"`
	From      string `json:"from,omitempty"` // https address, or HOST/NAME:TAG of a registry
	Digest    string `json:"digest,omitempty"`
	Settings  string `json:"settings,omitempty"`  // text of edge-infer fleet configure
	Signature string `json:"signature,omitempty"` // of minisign
}

// JobExecution is a job for one device.
type JobExecution struct {
	ID       string      `json:"jobId"`
	Status   JobStatus   `json:"status"`
	Document JobDocument `json:"jobDocument"`
}

// NextJob is the message of the topic of jobs. Without an execution there is nothing to do.
type NextJob struct {
	Execution *JobExecution `json:"execution,omitempty"`
}

// jobID is the form of a job's id.
var jobID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// maxJob bounds the size of a NextJob in bytes.
const maxJob = 64 << 10

// ParseNextJob reads a NextJob; an empty message has no execution. If the id can be read, the result has it also after an error.
func ParseNextJob(message []byte) (next NextJob, err error) {
	if len(message) == 0 {
		return next, nil
	}
	if len(message) > maxJob {
		return next, fmt.Errorf("a job of %d bytes, at most %d are read", len(message), maxJob)
	}
	if err := json.Unmarshal(message, &next); err != nil {
		return NextJob{}, fmt.Errorf("the job is not JSON that can be read: %w", err)
	}
	job := next.Execution
	if job == nil || *job == (JobExecution{}) {
		return NextJob{}, nil
	}
	switch {
	case !jobID.MatchString(job.ID):
		return NextJob{}, errors.New("jobId must consist of 1 to 64 letters, digits, dots, dashes and underscores")
	case job.Document.Operation == UpdateModel && job.Document.From == "":
		return next, errors.New("jobDocument.from is empty")
	case job.Document.Operation == UpdateSettings && (job.Document.Settings == "" || job.Document.Signature == ""):
		return next, errors.New("jobDocument.settings or signature is empty")
	case job.Document.Operation == UpdateModel, job.Document.Operation == UpdateSettings:
		return next, nil
	}
	return next, fmt.Errorf("operation %.40q is neither %s nor %s", job.Document.Operation, UpdateModel, UpdateSettings)
}

// JobUpdate is what a device says of a job.
type JobUpdate struct {
	Status  JobStatus  `json:"status"`
	Details JobDetails `json:"statusDetails"`
}

// JobDetails are the details of a JobUpdate.
type JobDetails struct {
	Phase   string `json:"phase,omitempty"` // as Update.Phase, while the job is in progress
	Model   string `json:"model,omitempty"`
	Version int64  `json:"version,omitempty"` // of the bundle
	Reason  string `json:"reason,omitempty"`  // why it was not installed, or is not yet
	// Agreement is as Update.Agreement.
	Agreement *float64 `json:"agreement,omitempty"`
}

// AppendJSON appends the payload to buf and returns it.
func (u *JobUpdate) AppendJSON(buf []byte, device string, now time.Time) []byte {
	message := struct {
		Header
		*JobUpdate
	}{NewHeader(device, now), u}
	return AppendMessage(buf, &message)
}
