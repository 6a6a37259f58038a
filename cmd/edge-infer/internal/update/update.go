// Package update keeps the model of a running daemon current: it receives signed bundles, compares a new model with the running one on
// images of the device's own cameras, has it run on trial, and goes back if anything is wrong. The version in force on the disk changes
// last of all, so that a power cut at any time leaves a model that works.
package update

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Fleet runs the models of the cameras.
type Fleet interface {
	// Comparison returns the settings by which a model, by its configured name, is compared with another version of it. The error says why
	// that is not possible now.
	Comparison(model string) (judge.Request, error)
	// UseModel has all cameras with a model go on with other files of it, without losing a frame. On an error all go on as before.
	UseModel(ctx context.Context, model string, files judge.Model) error
	// Health returns how the cameras with a model do that runs from a file.
	Health(model, file string) Health
	// HasModel reports whether a camera has a model.
	HasModel(model, camera string) bool
}

// Health is how the cameras with a model do. The counters run from the start.
type Health struct {
	Err                        error // why frames are not inferred with the model, nil if they are
	Devices                    int   // that run it
	Captured, Inferred, Failed uint64
}

// Judge compares two models; *judge.Judge is one.
type Judge interface {
	Run(ctx context.Context, r judge.Request, images [][]byte, note func(string)) (*judge.Report, error)
}

// Updater keeps a model current. Set the fields, then call Open, have it be a sink, and call Run and Encode.
type Updater struct {
	State string // directory that outlasts restarts
	Fleet Fleet
	Judge Judge
	// Settings are those that jobs change.
	Settings Settings
	Machine  func(context.Context) (bundle.Machine, error) // see bundle.Pull
	Logger   *slog.Logger
	// Report takes how far this device has come with a job, and nil for one that is not reported any more. It must not wait.
	Report func(sender Sender, job string, update *payload.JobUpdate)
	// Restart asks for a new process, because the model before cannot be opened again.
	Restart func()

	*sampler
	store   catalogue.Store
	changed chan struct{} // holds a token when other settings are in force, or a job waits

	mu       sync.Mutex
	settings config.Bundle
	status   Status
	jobs     jobs
	finished map[Sender]*finishedJob // never changed, but replaced

	memory memory // Run's goroutine only
}

var _ pipeline.Sink = (*Updater)(nil)

const (
	// healthPause is the time between two checks of a model on trial.
	healthPause = time.Second
	// mostTrials is how often a bundle may begin its trial: power cuts may end some, but the model may be what ends them.
	mostTrials = 3
	// failedShare is the largest share of the frames that may fail in a trial, and spareFailures how many may fail or be missed in any case.
	failedShare   = 0.01
	spareFailures = 5
	// keptShare is the smallest share of the captured frames that must be inferred, as a part of what it was before.
	keptShare = 0.8
	// slowdown is how much slower a model may be than the one before, whatever the machine has to spare; fullLoad is the largest share of
	// the time in which a slower one may be at work.
	slowdown = 1.1
	fullLoad = 0.9
	// mapLoss is the largest loss of mAP50-95 on labelled images, as of the gate of engine plans.
	mapLoss = 0.01
	// waitPause is the time between two checks whether a comparison is possible.
	waitPause = 5 * time.Second
)

// Open makes the updater ready. It reads what is known of earlier runs.
func (u *Updater) Open(settings config.Bundle) {
	u.sampler = newSampler()
	u.changed = make(chan struct{}, 1)
	u.settings = settings
	u.status = Status{Source: shownSource(settings.From), Phase: Current}
	var err error
	if u.store, err = catalogue.Open(); err != nil {
		u.status.Error = err.Error()
	}
	if u.memory, err = readMemory(u.State); err != nil {
		u.Logger.Warn("earlier updates are not known", "error", err)
	}
	if u.memory.Settings.Trying != 0 { // they are in force in this run until Run ends the trial, and should this run fail, in no other
		if err := u.Settings.Write(u.memory.Settings.Before); err != nil {
			u.Logger.Warn("settings on trial when the program ended", "error", err)
		}
	}
	u.status.Last, u.finished = u.memory.Last, u.memory.Jobs
	if u.finished == nil {
		u.finished = map[Sender]*finishedJob{}
	}
}

// Asked records that an update server was asked for jobs, by its address without secrets, and why that failed.
func (u *Updater) Asked(server string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	u.report(func(s *Status) { s.Server, s.ServerError = server, text })
}

// Set changes the settings. An update that is under way goes on with those that it has begun with.
func (u *Updater) Set(settings config.Bundle) {
	u.mu.Lock()
	u.settings = settings
	u.mu.Unlock()
	wake(u.changed)
}

// Status returns the present state, nil while models are not updated: there is no source, and no job has come.
func (u *Updater) Status() *Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.settings.From == "" && len(u.finished) == 0 && u.jobs.active == nil && u.status.Server == "" {
		return nil
	}
	s := u.status
	return &s
}

func (u *Updater) report(change func(*Status)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.status)
}

func (u *Updater) inForce() config.Bundle {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.settings
}

// Encode turns sampled frames into images until ctx ends, which must not be before the frame loops have ended.
func (u *Updater) Encode(ctx context.Context) { u.sampler.Run(ctx) }

// Run asks for newer bundles and installs them until ctx ends.
func (u *Updater) Run(ctx context.Context) {
	u.endSettingsTrial(ctx)
	failures := 0
	for ctx.Err() == nil {
		if ofJob, job := u.takeJob(ctx); job != nil {
			u.do(ofJob, job)
			continue
		}
		settings := u.inForce()
		var pause <-chan time.Time
		if settings.From != "" {
			_, err := u.once(ctx, &settings, nil)
			if ctx.Err() != nil {
				return
			}
			failures = u.checked(err, failures)
			pause = time.After(pauseAfter(settings.Every, failures))
		}
		select {
		case <-ctx.Done():
		case <-pause:
		case <-u.changed:
			failures = 0
		}
	}
}

// pauseAfter is the time until the source is asked again: shorter after a failure, longer with each further one. Devices that are started
// together do not ask together for long.
func pauseAfter(every time.Duration, failures int) time.Duration {
	if failures == 0 {
		return every - rand.N(every/10)
	}
	return min(every, backoff.Exponential{Min: time.Minute, Max: time.Hour}.After(failures-1))
}

// checked records the end of a check and returns how many in a row have failed.
func (u *Updater) checked(err error, failures int) int {
	text := ""
	if err != nil {
		text = err.Error()
	}
	before := ""
	u.report(func(s *Status) {
		before = s.Error
		s.Phase, s.Doing = Current, ""
		s.Candidate, s.Error = 0, text
		s.Checked = time.Now()
	})
	if err == nil {
		return 0
	}
	if text != before {
		u.Logger.Warn("model not updated", "error", err)
	}
	return failures + 1
}

// candidate is a bundle that has been received, and the files of its model.
type candidate struct {
	*bundle.Info
	files judge.Model
}

// errKnown ends a pull of a bundle that was refused on this device before.
var errKnown = errors.New("this bundle was refused before")

// once asks the source and installs what is newer, for a job or on its own. It returns how the bundle of the source has fared, now or
// before; nil if there is none. The error is why that is not known; a refused bundle is none.
func (u *Updater) once(ctx context.Context, settings *config.Bundle, job *Job) (*Outcome, error) {
	u.report(func(s *Status) { s.Source = shownSource(settings.From) })
	if job == nil && filepath.IsAbs(settings.From) && !exists(settings.From) { // another program puts bundles there
		return nil, nil
	}
	u.doing(Downloading, "")
	c, known, err := u.receive(ctx, settings, job)
	if err != nil || c == nil {
		return known, err
	}
	outcome := &Outcome{Digest: c.Digest, Model: c.Name, Version: c.Version}
	err = u.install(ctx, settings, c, outcome)
	if err != nil && ctx.Err() != nil { // tried again by the next run, or not wanted any more
		u.memory.Trials = max(0, u.memory.Trials-1) // which was not ended by the model
		return nil, errors.Join(err, u.memory.save(u.State))
	}
	if err != nil {
		outcome.Reason = err.Error()
		err = u.store.RemoveCandidate(ctx, c.Name)
	}
	outcome.At = time.Now()
	return outcome, errors.Join(err, u.conclude(outcome))
}

// conclude records and logs an outcome.
func (u *Updater) conclude(outcome *Outcome) error {
	u.memory = memory{Last: outcome, Jobs: u.memory.Jobs, Settings: u.memory.Settings}
	u.report(func(s *Status) {
		s.Last = outcome
		if outcome.Installed() {
			s.Version = outcome.Version
		}
	})
	if outcome.Installed() {
		u.Logger.Info("model updated", "model", outcome.Model, "outcome", outcome.Text())
	} else {
		u.Logger.Error("model not updated", "model", outcome.Model, "outcome", outcome.Text())
	}
	return u.memory.save(u.State)
}

// receive asks the source for its bundle and receives it beside the version in force. If the bundle is installed or was refused, that is
// the outcome.
func (u *Updater) receive(ctx context.Context, settings *config.Bundle, job *Job) (*candidate, *Outcome, error) {
	if u.State == "" {
		return nil, nil, errors.New("there is no state directory (set XDG_STATE_HOME)")
	}
	keys, err := bundle.ReadKeys(settings.Keys)
	if err != nil {
		return nil, nil, err
	}
	if len(keys) == 0 {
		return nil, nil, errors.New("bundle.keys has no key, and only signed bundles are installed without a person")
	}
	var info *bundle.Info
	source := bundle.Source{Location: settings.From, Progress: func(what string) progress.Step { return noted{u, what} }}
	digest := ""
	if job != nil {
		source.Remote, source.Contents = true, job.Contents
		source.PlainHTTP, source.Transport = job.PlainHTTP, job.Transport
		digest = job.Digest
	}
	pull := bundle.Pull{
		Source: source, Store: u.store, Keys: keys, Machine: u.Machine, Stage: true,
		Accept: func(i *bundle.Info) error {
			info = i
			if digest != "" && digest != i.Digest {
				return fmt.Errorf("its digest is %s, that of the job %.80s", i.Digest, digest)
			}
			return u.accept(i)
		},
	}
	result, err := pull.Run(ctx)
	switch {
	case errors.Is(err, errKnown):
		return nil, u.memory.Last, nil
	case err != nil:
		return nil, nil, err
	case result.AlreadyPresent:
		return nil, &Outcome{Digest: info.Digest, Model: info.Name, Version: info.Version}, nil
	}
	c := &candidate{Info: info, files: judge.Model{Path: result.Path}}
	labels := catalogue.Store{Dir: filepath.Dir(result.Path)}.LabelsPath(info.Name)
	if exists(labels) {
		c.files.Labels = labels
	}
	u.report(func(s *Status) { s.Candidate = info.Version })
	return c, nil, nil
}

// accept decides whether a bundle is received, by its manifest.
func (u *Updater) accept(i *bundle.Info) error {
	installed := int64(0)
	if now := bundle.Installed(u.store, i.Name); now != nil {
		installed = now.Version
	}
	u.report(func(s *Status) { s.Model, s.Version = i.Name, installed })
	if last := u.memory.Last; last != nil && !last.Installed() && last.Digest == i.Digest {
		return errKnown
	}
	return nil
}

// noted shows the progress of a download.
type noted struct {
	u    *Updater
	what string
}

func (n noted) Count(done, total int) {
	n.Note(fmt.Sprintf("%s: %d of %d", n.what, done, total))
}
func (n noted) Note(text string) { n.u.report(func(s *Status) { s.Doing = text }) }
func (noted) Close()             {}

// shownSource returns a source without what may be secret in it.
func shownSource(from string) string {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" {
		return from
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// doing reports a phase.
func (u *Updater) doing(phase Phase, text string) {
	u.report(func(s *Status) { s.Phase, s.Doing = phase, text })
	u.progress(phase, "")
}

// install brings a candidate into force, or returns why not.
func (u *Updater) install(ctx context.Context, settings *config.Bundle, c *candidate, outcome *Outcome) error {
	if u.memory.Trying == c.Digest && u.memory.Trials >= mostTrials {
		return fmt.Errorf("the program has ended %d times while it was on trial", u.memory.Trials)
	}
	comparison, err := u.comparison(ctx, c.Name)
	if err != nil {
		return err
	}
	comparison.Candidate = c.files
	if images := bundle.LabelledPath(c.files.Path); exists(images) {
		comparison.Labelled = images
	}
	var usual pace
	if settings.Agreement > 0 {
		before := u.Fleet.Health(c.Name, comparison.Running.Path)
		begun := time.Now()
		images, err := u.collect(ctx, c.Name, settings.Trial)
		if err != nil {
			return err
		}
		usual = since(before, u.Fleet.Health(c.Name, comparison.Running.Path), time.Since(begun))
		err = u.compare(ctx, settings, comparison, images, usual, outcome)
		if err != nil {
			return err
		}
	}
	return u.trial(ctx, settings, c, comparison, usual, outcome)
}

// comparison waits until the running model can be compared.
func (u *Updater) comparison(ctx context.Context, model string) (judge.Request, error) {
	for {
		r, err := u.Fleet.Comparison(model)
		if err == nil {
			return r, nil
		}
		u.doing(Collecting, "waits: "+err.Error())
		if err := sleep(ctx, waitPause); err != nil {
			return judge.Request{}, err
		}
	}
}

// collect returns images of the cameras that have a model, most of them with objects. They are spread over a span of time, or a longer one
// until enough of them show objects.
func (u *Updater) collect(ctx context.Context, model string, span time.Duration) ([][]byte, error) {
	c := u.collection(model, span)
	c.objects = true
	u.begin(c)
	defer u.end()
	ticker := time.NewTicker(healthPause)
	defer ticker.Stop()
	for {
		u.doing(Collecting, fmt.Sprintf("%d of %d images", len(c.taken()), sampleImages))
		select {
		case <-c.done:
			return c.taken(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// collection returns an empty collection of images that are spread over a span of time.
func (u *Updater) collection(model string, span time.Duration) *collection {
	return &collection{has: func(camera string) bool { return u.Fleet.HasModel(model, camera) }, pause: int64(span) / sampleImages}
}

// compare compares the models on images and returns why the candidate is refused. usual is how the running model does.
func (u *Updater) compare(ctx context.Context, settings *config.Bundle, r judge.Request, images [][]byte, usual pace, outcome *Outcome) error {
	u.doing(Judging, "")
	report, err := u.Judge.Run(ctx, r, images, func(text string) { u.doing(Judging, text) })
	if err != nil {
		return err
	}
	a := report.Agreement
	outcome.Agreement, outcome.Boxes, outcome.Images = &a.MatchRate, a.Reference, a.Images
	outcome.Labelled = report.Labelled
	slower := float64(report.Candidate) > slowdown*float64(report.Running)
	switch {
	case report.Unsuitable != "":
		return errors.New(report.Unsuitable + " (edge-infer bundle pull installs it, a restart brings it into force)")
	case a.MatchRate < settings.Agreement:
		return fmt.Errorf("it finds other objects than the running model: %.3f agreement, bundle.agreement is %v", a.MatchRate,
			settings.Agreement)
	case report.Labelled != nil && report.Labelled.Candidate < report.Labelled.Running-mapLoss:
		return fmt.Errorf("it is less accurate on the %d labelled images of its bundle: mAP50-95 %.3f, the running model has %.3f",
			report.Labelled.Images, report.Labelled.Candidate, report.Labelled.Running)
	case slower && usual.rate*report.Candidate.Seconds() > fullLoad:
		return fmt.Errorf("it is too slow for %.3g frames per second: %v per image, the running model takes %v", usual.rate,
			report.Candidate.Round(10*time.Microsecond), report.Running.Round(10*time.Microsecond))
	}
	return nil
}
