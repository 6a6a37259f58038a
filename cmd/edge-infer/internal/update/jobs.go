package update

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// jobTries is how often a source that does not answer is asked for the bundle of a job.
const jobTries = 8

// errWithdrawn is the cause of the end of a job that its sender has withdrawn, or replaced.
var errWithdrawn = errors.New("the job was withdrawn")

// jobs are the jobs that came from elsewhere. They are guarded by the updater's lock.
type jobs struct {
	waiting  *payload.JobExecution // not begun yet
	active   *payload.JobExecution
	withdraw context.CancelCauseFunc // of active
	phase    Phase                   // of active, as it was reported last
}

// finishedJob is the last job that has ended.
type finishedJob struct {
	ID     string            `json:"id"`
	Update payload.JobUpdate `json:"update"`
}

// Receive takes a message of the topic of jobs. Another job replaces the one before, and a message without a job withdraws it. The same job
// again changes nothing, but if it has ended, its end is reported again. Receive does not wait.
func (u *Updater) Receive(message []byte) {
	next, err := payload.ParseNextJob(message)
	job := next.Execution
	if err != nil {
		u.Logger.Warn("job refused", "error", err)
		if job != nil {
			u.Report(job.ID, &payload.JobUpdate{Status: payload.JobRejected, Details: payload.JobDetails{Reason: err.Error()}})
		}
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if job != nil {
		if last := u.finished; last != nil && last.ID == job.ID {
			u.Report(job.ID, &last.Update)
			return
		}
		if u.jobs.active != nil && u.jobs.active.ID == job.ID {
			return
		}
	}
	u.jobs.waiting = job
	if u.jobs.active != nil {
		u.jobs.withdraw(errWithdrawn)
	}
	if job != nil {
		wake(u.changed)
	}
}

// takeJob begins the job that waits, with a context of its own; nil if none waits.
func (u *Updater) takeJob(ctx context.Context) (context.Context, *payload.JobExecution) {
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
func (u *Updater) do(ctx context.Context, job *payload.JobExecution) {
	u.Logger.Info("job begun", "job", job.ID, "from", shownSource(job.Document.From))
	outcome, err := u.tryJob(ctx, job)
	withdrawn := errors.Is(context.Cause(ctx), errWithdrawn)
	interrupted := err != nil && ctx.Err() != nil && !withdrawn
	u.mu.Lock()
	u.jobs.withdraw(nil)
	u.jobs.active, u.jobs.phase = nil, ""
	u.mu.Unlock()
	if !interrupted {
		u.finish(job, ended(outcome, err, withdrawn))
	}
}

// ended is what is reported of a job that has ended.
func ended(outcome *Outcome, err error, withdrawn bool) payload.JobUpdate {
	update := payload.JobUpdate{Status: payload.JobSucceeded}
	if outcome != nil {
		update.Details = payload.JobDetails{
			Model: outcome.Model, Version: outcome.Version, Reason: outcome.Reason, Agreement: outcome.Agreement,
		}
	}
	switch {
	case err != nil && withdrawn:
		update.Status, update.Details.Reason = payload.JobCanceled, errWithdrawn.Error()
	case err != nil:
		update.Status, update.Details.Reason = payload.JobRejected, err.Error()
	case !outcome.Installed():
		update.Status = payload.JobFailed
	}
	return update
}

// finish remembers and reports the end of a job.
func (u *Updater) finish(job *payload.JobExecution, update payload.JobUpdate) {
	u.Logger.Info("job ended", "job", job.ID, "status", update.Status, "reason", update.Details.Reason)
	last := &finishedJob{job.ID, update}
	u.memory.Job = last
	if err := u.memory.save(u.State); err != nil {
		u.Logger.Warn("the end of a job is not remembered", "job", job.ID, "error", err)
	}
	u.mu.Lock()
	before := u.finished
	u.finished, u.status.Job = last, ""
	u.mu.Unlock()
	u.Report(job.ID, &update)
	if before != nil {
		u.Report(before.ID, nil)
	}
}

// tryJob receives and installs the bundle of a job. A source that does not answer is asked again.
func (u *Updater) tryJob(ctx context.Context, job *payload.JobExecution) (outcome *Outcome, err error) {
	settings := u.inForce()
	settings.From = job.Document.From
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
	return errors.As(err, new(net.Error)) || errors.Is(err, io.ErrUnexpectedEOF)
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
		u.Report(job.ID, &payload.JobUpdate{Status: payload.JobInProgress, Details: details})
	}
}

// wake puts a token into a channel, unless it holds one.
func wake(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
