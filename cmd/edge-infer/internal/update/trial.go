package update

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
)

// pace is how a model has done over some time.
type pace struct {
	rate     float64 // inferred frames per second and device
	share    float64 // of the captured frames that were inferred, 0 without any
	missed   uint64  // captured and not inferred, those under way included
	inferred uint64
	failed   uint64
}

// since returns the pace between two checks.
func since(before, now Health, over time.Duration) (p pace) {
	captured := now.Captured - min(before.Captured, now.Captured) // cameras may be gone
	p.inferred = now.Inferred - min(before.Inferred, now.Inferred)
	p.failed = now.Failed - min(before.Failed, now.Failed)
	if over > 0 && now.Devices > 0 {
		p.rate = float64(p.inferred) / over.Seconds() / float64(now.Devices)
	}
	p.missed = captured - min(p.inferred, captured)
	if captured > 0 {
		p.share = float64(p.inferred) / float64(captured)
	}
	return p
}

// trial has the candidate run. If nothing is wrong by the end of the trial it is brought into force on the disk, otherwise the model before
// runs again and the reason is returned.
func (u *Updater) trial(ctx context.Context, settings *config.Bundle, c *candidate, r judge.Request, usual pace, outcome *Outcome) error {
	if u.memory.Trying != c.Digest {
		u.memory.Trying, u.memory.Trials = c.Digest, 0
	}
	u.memory.Trials++
	if err := u.memory.save(u.State); err != nil {
		return fmt.Errorf("a trial needs the state directory: %w", err)
	}
	u.doing(Trial, "the new model is being opened")
	if err := u.Fleet.UseModel(ctx, c.Name, c.files); err != nil {
		return err
	}
	u.Logger.Info("new model on trial", "model", c.Name, "version", c.Version, "for", settings.Trial)
	err := u.watch(ctx, settings, c, r, usual, outcome)
	if err == nil {
		err = u.store.InstallCandidate(ctx, c.Name)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		if !errors.Is(context.Cause(ctx), errWithdrawn) { // the next run begins with the version in force
			return err
		}
		ctx = context.WithoutCancel(ctx)
	}
	back := u.Fleet.UseModel(ctx, c.Name, r.Running)
	if back != nil && ctx.Err() == nil {
		u.Logger.Error("restarting, the model before cannot be opened again", "model", c.Name, "error", back)
		u.Restart()
	}
	return err
}

// watch looks after the candidate for the time of the trial, and then compares it once more on images of that time. It returns what is
// wrong with it.
func (u *Updater) watch(ctx context.Context, settings *config.Bundle, c *candidate, r judge.Request, usual pace, outcome *Outcome) error {
	images := u.collection(c.Name, settings.Trial)
	u.begin(images)
	defer u.end()
	begun, end := time.Now(), time.After(settings.Trial)
	before := u.Fleet.Health(c.Name, c.files.Path)
	ticker := time.NewTicker(min(healthPause, settings.Trial))
	defer ticker.Stop()
	for over := false; !over; {
		u.doing(Trial, "until "+begun.Add(settings.Trial).Format(time.TimeOnly))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			over = true
		case <-ticker.C:
		}
		health := u.Fleet.Health(c.Name, c.files.Path)
		if err := wrong(usual, since(before, health, time.Since(begun)), health.Err, over); err != nil {
			return err
		}
	}
	taken := images.taken()
	if settings.Agreement == 0 || len(taken) == 0 {
		return nil
	}
	return u.compare(ctx, settings, r, taken, usual, outcome)
}

// wrong returns what is wrong with a model on trial.
func wrong(usual, now pace, fault error, over bool) error {
	switch {
	case fault != nil:
		return fmt.Errorf("on trial: %w", fault)
	case now.failed > spareFailures && float64(now.failed) > failedShare*float64(now.inferred+now.failed):
		return fmt.Errorf("on trial %d frames failed, %d were inferred", now.failed, now.inferred)
	case over && now.missed > spareFailures && now.share < keptShare*usual.share:
		return fmt.Errorf("on trial %.0f %% of the cameras' frames were inferred, %.0f %% before", 100*now.share, 100*usual.share)
	case over && now.inferred == 0 && usual.inferred > 0:
		return errors.New("on trial no frame was inferred")
	}
	return nil
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// exists reports whether there is a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
