package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Settings are the settings that a device has in common with others, as a job changes them.
type Settings interface {
	// Read returns the text in force, nil for none. Write replaces it, and removes it for nil.
	Read() ([]byte, error)
	Write(text []byte) error
	// Check returns what is wrong with the form of a text.
	Check(text []byte) error
	// Apply brings the text into force. An error changes nothing, and says why that is not possible in this process.
	Apply(ctx context.Context) error
	// Working returns the names of the parts that work now: the broker, and each camera.
	Working() []string
}

// appliedSettings is what an updater remembers of settings.
type appliedSettings struct {
	Version int64 `json:"version"` // in force, 0 before the first
	// Before is the text that is restored if the trial is interrupted; it is on trial if Trying is not 0.
	Trying int64  `json:"trying,omitempty"`
	Before []byte `json:"before,omitempty"`
}

// configure applies the settings of a job, has them run on trial, and goes back if a part that worked before works no more. The update is
// how that has ended; an error is that of ctx.
func (u *Updater) configure(ctx context.Context, job *Job) (payload.JobUpdate, error) {
	rejected := func(err error) (payload.JobUpdate, error) {
		return payload.JobUpdate{Status: payload.JobRejected, Details: payload.JobDetails{Reason: err.Error()}}, nil
	}
	settings := u.inForce()
	keys, err := bundle.ReadKeys(settings.Keys)
	if err != nil {
		return rejected(err)
	}
	s, err := keys.OpenSettings(job.Settings, job.Signature, time.Now())
	if err != nil {
		return rejected(err)
	}
	text := []byte(s.Settings)
	if err := u.Settings.Check(text); err != nil {
		return rejected(err)
	}
	before, err := u.Settings.Read()
	if err != nil {
		return rejected(err)
	}
	switch {
	case s.Version == u.memory.Settings.Version && string(before) == s.Settings: // as after a lost report
		return payload.JobUpdate{Status: payload.JobSucceeded, Details: payload.JobDetails{Version: s.Version}}, nil
	case s.Version <= u.memory.Settings.Version:
		return rejected(fmt.Errorf("settings version %d are not newer than version %d, which this device has", s.Version,
			u.memory.Settings.Version))
	}
	u.doing(Trial, fmt.Sprintf("settings version %d", s.Version))
	if err := u.tryText(ctx, s.Version, text, before, settings.Trial); err != nil {
		if ctx.Err() != nil {
			return payload.JobUpdate{}, err
		}
		u.Logger.Error("settings not changed", "version", s.Version, "error", err)
		return payload.JobUpdate{Status: payload.JobFailed, Details: payload.JobDetails{Version: s.Version, Reason: err.Error()}}, nil
	}
	u.Logger.Info("settings changed", "version", s.Version)
	return payload.JobUpdate{Status: payload.JobSucceeded, Details: payload.JobDetails{Version: s.Version}}, nil
}

// tryText has a text in force for the time of the trial, and longer if it is right. Otherwise the text before is in force again.
func (u *Updater) tryText(ctx context.Context, version int64, text, before []byte, trial time.Duration) error {
	had := u.memory.Settings.Version
	u.memory.Settings = appliedSettings{Version: had, Trying: version, Before: before}
	if err := u.memory.save(u.State); err != nil {
		return fmt.Errorf("a trial needs the state directory: %w", err)
	}
	worked := u.Settings.Working()
	err := u.Settings.Write(text)
	if err == nil {
		err = u.Settings.Apply(ctx)
	}
	if err == nil {
		err = sleep(ctx, trial)
	}
	if err == nil {
		err = u.work(ctx, worked, min(trial, longestLapse))
	}
	if err == nil {
		u.memory.Settings = appliedSettings{Version: version}
		return u.memory.save(u.State)
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errWithdrawn) {
		return err // the next run goes back
	}
	return errors.Join(err, u.restore(context.WithoutCancel(ctx), before))
}

// longestLapse is how long a part may do without working at the end of a trial: cameras and brokers connect again at any time.
const longestLapse = 30 * time.Second

// work waits until all parts work that worked before, for at most that long, and returns an error if one does not.
func (u *Updater) work(ctx context.Context, worked []string, within time.Duration) error {
	end := time.Now().Add(within)
	for {
		err := lost(worked, u.Settings.Working())
		if err == nil || !time.Now().Before(end) {
			return err
		}
		if err := sleep(ctx, min(healthPause, within)); err != nil {
			return err
		}
	}
}

// restore brings the text before a trial into force.
func (u *Updater) restore(ctx context.Context, before []byte) error {
	err := u.Settings.Write(before)
	if err == nil {
		err = u.Settings.Apply(ctx)
	}
	if err != nil {
		return fmt.Errorf("the settings before are not in force: %w", err)
	}
	u.memory.Settings = appliedSettings{Version: u.memory.Settings.Version}
	return u.memory.save(u.State)
}

// lost returns an error if a part that worked works no more.
func lost(before, now []string) error {
	before = slices.DeleteFunc(slices.Clone(before), func(part string) bool { return slices.Contains(now, part) })
	if len(before) == 0 {
		return nil
	}
	return fmt.Errorf("on trial %s ceased to work", strings.Join(before, ", "))
}

// endSettingsTrial goes back if an earlier run was interrupted while settings were on trial.
func (u *Updater) endSettingsTrial(ctx context.Context) {
	if u.memory.Settings.Trying == 0 {
		return
	}
	u.Logger.Warn("settings on trial when the program ended, going back", "version", u.memory.Settings.Trying)
	if err := u.restore(ctx, u.memory.Settings.Before); err != nil && ctx.Err() == nil {
		u.Logger.Error("settings", "error", err)
	}
}
