package update

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// jobTries is how often a source that does not answer is asked for the bundle of a job.
const jobTries = 8

// errWithdrawn is the cause of the end of a job that its sender has withdrawn, or replaced.
var errWithdrawn = errors.New("the job was withdrawn")

// Sender is where jobs come from.
type Sender string

// The senders.
const (
	Broker  Sender = "broker"
	HawkBit Sender = "hawkbit"
)

// Job asks this device to install the bundle of a source, once, or to take settings.
type Job struct {
	Sender Sender
	ID     string // which the sender gives to no other job
	From   string // https address, or HOST/NAME:TAG of a registry
	Digest string // that the bundle's manifest must have; empty for any
	// Contents, PlainHTTP and Transport are as in bundle.Source.
	Contents  string
	PlainHTTP bool
	Transport http.RoundTripper
	// Settings and Signature are those of bundle.Settings; empty for a job that installs a bundle.
	Settings, Signature string
}

// jobs are the jobs that came from elsewhere. They are guarded by the updater's lock.
type jobs struct {
	waiting  *Job // not begun yet
	active   *Job
	withdraw context.CancelCauseFunc // of active
	phase    Phase                   // of active, as it was reported last
}

// finishedJob is the last job of a sender that has ended.
type finishedJob struct {
	ID     string            `json:"id"`
	Update payload.JobUpdate `json:"update"`
}

// Receive takes a message of the broker's topic of jobs. Another job replaces the one before from there, and a message without a job
// withdraws it. The same job again changes nothing, but if it has ended, its end is reported again. Receive does not wait.
func (u *Updater) Receive(message []byte) {
	next, err := payload.ParseNextJob(message)
	job := next.Execution
	if err != nil {
		u.Logger.Warn("job refused", "error", err)
		if job != nil {
			u.Report(Broker, job.ID, &payload.JobUpdate{Status: payload.JobRejected, Details: payload.JobDetails{Reason: err.Error()}})
		}
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if job != nil && u.isKnown(Broker, job.ID) {
		return
	}
	if waiting := u.jobs.waiting; waiting != nil && waiting.Sender == Broker {
		u.jobs.waiting = nil
	}
	if active := u.jobs.active; active != nil && active.Sender == Broker {
		u.jobs.withdraw(errWithdrawn)
	}
	if job != nil { // another sender offers its job again
		d := &job.Document
		u.jobs.waiting = &Job{
			Sender: Broker, ID: job.ID, From: d.From, Digest: d.Digest, Settings: d.Settings, Signature: d.Signature,
		}
		wake(u.changed)
	}
}

// isKnown reports whether a job is being done or has ended; its end is reported again.
func (u *Updater) isKnown(sender Sender, id string) bool {
	if last := u.finished[sender]; last != nil && last.ID == id {
		u.Report(sender, id, &last.Update)
		return true
	}
	active := u.jobs.active
	return active != nil && active.Sender == sender && active.ID == id
}

// Offer takes a job that is not known yet, unless there is another one; the caller offers it again later. If it has ended, its end is
// reported again. Offer does not wait.
func (u *Updater) Offer(job *Job) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.isKnown(job.Sender, job.ID) && u.jobs.active == nil && u.jobs.waiting == nil {
		u.jobs.waiting = job
		wake(u.changed)
	}
}

// Withdraw ends a job; the device goes back if it is on trial. It reports whether the job was being done: then its end is reported soon.
// Withdraw does not wait.
func (u *Updater) Withdraw(sender Sender, id string) (wasActive bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	is := func(job *Job) bool { return job != nil && job.Sender == sender && job.ID == id }
	if is(u.jobs.waiting) {
		u.jobs.waiting = nil
	}
	if !is(u.jobs.active) {
		return false
	}
	u.jobs.withdraw(errWithdrawn)
	return true
}

// takeJob begins the job that waits, with a context of its own; nil if none waits.
func (u *Updater) takeJob(ctx context.Context) (context.Context, *Job) {
	u.mu.Lock()
	defer u.mu.Unlock()
	job := u.jobs.waiting
	if job == nil {
		return ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	u.jobs = jobs{active: job, withdraw: cancel}
	u.status.Job = job.ID
	return ctx, job
}

// do carries a job out and reports it. A run that ends meanwhile leaves it to the next one.
func (u *Updater) do(ctx context.Context, job *Job) {
	u.Logger.Info("job begun", "job", job.ID, "sender", job.Sender)
	var update payload.JobUpdate
	var err error
	if job.Settings != "" {
		update, err = u.configure(ctx, job)
		u.checked(nil, 0)
	} else {
		var outcome *Outcome
		outcome, err = u.tryJob(ctx, job)
		update = ended(outcome, err)
	}
	withdrawn := errors.Is(context.Cause(ctx), errWithdrawn)
	if err != nil && withdrawn {
		update.Status, update.Details.Reason = payload.JobCanceled, errWithdrawn.Error()
	}
	interrupted := err != nil && ctx.Err() != nil && !withdrawn
	u.mu.Lock()
	u.jobs.withdraw(nil)
	u.jobs.active, u.jobs.phase = nil, ""
	u.mu.Unlock()
	if !interrupted {
		u.finish(job, update)
	}
}

// ended is what is reported of a job that has ended.
func ended(outcome *Outcome, err error) payload.JobUpdate {
	update := payload.JobUpdate{Status: payload.JobSucceeded}
	if outcome != nil {
		update.Details = payload.JobDetails{
			Model: outcome.Model, Version: outcome.Version, Reason: outcome.Reason, Agreement: outcome.Agreement,
		}
	}
	switch {
	case err != nil:
		update.Status, update.Details.Reason = payload.JobRejected, err.Error()
	case !outcome.Installed():
		update.Status = payload.JobFailed
	}
	return update
}

// finish remembers and reports the end of a job.
func (u *Updater) finish(job *Job, update payload.JobUpdate) {
	u.Logger.Info("job ended", "job", job.ID, "status", update.Status, "reason", update.Details.Reason)
	last := &finishedJob{job.ID, update}
	u.mu.Lock()
	before := u.finished[job.Sender]
	u.finished = maps.Clone(u.finished)
	u.finished[job.Sender], u.status.Job = last, ""
	u.memory.Jobs = u.finished
	u.mu.Unlock()
	if err := u.memory.save(u.State); err != nil {
		u.Logger.Warn("the end of a job is not remembered", "job", job.ID, "error", err)
	}
	u.Report(job.Sender, job.ID, &update)
	if before != nil {
		u.Report(job.Sender, before.ID, nil)
	}
}

// tryJob receives and installs the bundle of a job. A source that does not answer is asked again.
func (u *Updater) tryJob(ctx context.Context, job *Job) (outcome *Outcome, err error) {
	settings := u.inForce()
	settings.From = job.From
	for try := 1; ; try++ {
		outcome, err = u.once(ctx, &settings, job)
		u.checked(err, 0)
		if err == nil || !isTemporary(err) || try == jobTries {
			return outcome, err
		}
		u.progress(Downloading, err.Error())
		if sleep(ctx, pauseAfter(time.Hour, try)) != nil {
			return nil, ctx.Err()
		}
	}
}

// isTemporary reports whether an error of a source may be gone in a while.
func isTemporary(err error) bool {
	return errors.As(err, new(net.Error)) || errors.As(err, new(*catalogue.Interruption)) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// progress reports how far the active job is, if there is one and that is news.
func (u *Updater) progress(phase Phase, reason string) {
	u.mu.Lock()
	job := u.jobs.active
	news := job != nil && (u.jobs.phase != phase || reason != "")
	u.jobs.phase = phase
	details := payload.JobDetails{Phase: string(phase), Model: u.status.Model, Version: u.status.Candidate, Reason: reason}
	u.mu.Unlock()
	if news {
		u.Report(job.Sender, job.ID, &payload.JobUpdate{Status: payload.JobInProgress, Details: details})
	}
}

// wake puts a token into a channel, unless it holds one.
func wake(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
