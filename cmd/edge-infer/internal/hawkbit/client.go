// Package hawkbit is a client of the Direct Device Integration API of hawkBit, which other update servers have too: it asks a server for
// model bundles, has an updater install them, and reports how they fare. The server decides which devices get one, and when.
package hawkbit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Updater installs bundles; *update.Updater is one. Its methods do not wait.
type Updater interface {
	Offer(*update.Job)
	Withdraw(sender update.Sender, id string) (wasActive bool)
	Asked(server string, err error)
}

// Client polls a server. Set the fields, then call Open and Run.
type Client struct {
	Device  string // the server's controllerId
	Updater Updater
	// Attributes describe the device for the server.
	Attributes func() map[string]string
	Logger     *slog.Logger

	changed chan struct{} // holds a token when there are other settings, or a report waits

	mu       sync.Mutex
	settings config.HawkBit
	reports  map[string]*payload.JobUpdate // the newest of each action that the server has not got yet

	// Run's goroutine only.
	told     map[string]string // the attributes as they were sent last
	canceled map[string]string // ids of the cancellations of actions that are being ended
	noted    string            // action that waits for a confirmation, as it was logged
}

// mostReports is how many reports may wait for the server.
const mostReports = 16

// Open makes the client ready.
func (c *Client) Open(settings config.HawkBit) {
	c.changed = make(chan struct{}, 1)
	c.settings = settings
	c.reports, c.canceled = map[string]*payload.JobUpdate{}, map[string]string{}
}

// Set changes the settings.
func (c *Client) Set(settings config.HawkBit) {
	c.mu.Lock()
	same := c.settings == settings
	c.settings = settings
	c.mu.Unlock()
	if !same {
		c.wake()
	}
}

func (c *Client) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Report takes how far this device has come with an action, nil for one that is not reported any more. It does not wait.
func (c *Client) Report(id string, report *payload.JobUpdate) {
	if report == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.reports[id]; waits || len(c.reports) < mostReports { // the server asks again for the end of another
		c.reports[id] = report
		c.wake()
	}
}

// inForce returns the settings.
func (c *Client) inForce() config.HawkBit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings
}

// Run polls the server until ctx ends.
func (c *Client) Run(ctx context.Context) {
	var session *session
	failures := 0
	var next time.Time
	for ctx.Err() == nil {
		settings := c.inForce()
		if session == nil || session.settings != settings {
			if session != nil {
				session.close()
			}
			session = newSession(settings, c.Device)
			failures, next, c.told = 0, time.Time{}, nil
		}
		var pause <-chan time.Time
		if settings.URL != "" {
			wait, err := c.turn(ctx, session, !time.Now().Before(next))
			if ctx.Err() != nil {
				break
			}
			switch {
			case err != nil:
				failures++
				wait = backoff.Exponential{Min: time.Second, Max: defaultPause}.After(failures - 1)
				next = time.Now().Add(wait)
			case wait > 0:
				failures = 0
				next = time.Now().Add(wait - rand.N(wait/10+1)) // devices that are started together do not ask together for long
			}
			c.asked(session, err)
			pause = time.After(time.Until(next))
		} else {
			c.Updater.Asked("", nil)
		}
		select {
		case <-ctx.Done():
		case <-pause:
		case <-c.changed:
		}
	}
	session.close()
}

// asked records and logs how the server was reached.
func (c *Client) asked(s *session, err error) {
	if err != nil && (s.failed == nil || s.failed.Error() != err.Error()) {
		c.Logger.Warn("update server", "server", s.shown(), "error", err)
	}
	if err == nil && s.failed != nil {
		c.Logger.Info("the update server answers again", "server", s.shown())
	}
	s.failed = err
	c.Updater.Asked(s.shown(), err)
}

// turn sends the reports that wait, and polls if it is time to. It returns the time until the next poll, 0 without one.
func (c *Client) turn(ctx context.Context, s *session, poll bool) (time.Duration, error) {
	err := c.sendReports(ctx, s)
	if err != nil || !poll {
		return 0, err
	}
	var base resource
	from, err := s.get(ctx, s.base, &base)
	if err != nil {
		return 0, err
	}
	if err := c.answer(ctx, s, from, &base); err != nil {
		return 0, err
	}
	return base.pause(), nil
}

// answer does what the server asks for.
func (c *Client) answer(ctx context.Context, s *session, from *url.URL, base *resource) error {
	if err := c.tell(ctx, s, from, base.Links.Attributes); err != nil {
		return err
	}
	if wanted := base.Links.Confirmation; wanted != nil && wanted.Href != c.noted {
		c.noted = wanted.Href
		c.Logger.Warn("an action waits for a confirmation, which this device does not give (confirm it on the update server)")
	}
	switch {
	case base.Links.Cancel != nil:
		return c.cancel(ctx, s, from, base.Links.Cancel)
	case base.Links.Deployment != nil:
		return c.deploy(ctx, s, from, base.Links.Deployment)
	}
	return nil
}

// tell sends the attributes of the device if the server asks for them, or they have changed.
func (c *Client) tell(ctx context.Context, s *session, from *url.URL, to *link) error {
	now := c.Attributes()
	changed := c.told != nil && !maps.Equal(now, c.told)
	if to == nil && !changed {
		c.told = now // the server knows enough
		return nil
	}
	address := s.base.JoinPath("configData")
	if to != nil {
		var err error
		if address, err = to.resolve(from); err != nil {
			return err
		}
	}
	body := map[string]any{"mode": "merge", "data": now}
	if err := s.send(ctx, http.MethodPut, address, body); err != nil {
		return fmt.Errorf("attributes: %w", err)
	}
	c.told = now
	return nil
}

// deploy offers an action to the updater.
func (c *Client) deploy(ctx context.Context, s *session, from *url.URL, to *link) error {
	var action deployment
	from, err := s.open(ctx, from, to, &action)
	if err != nil {
		return fmt.Errorf("action: %w", err)
	}
	if !action.mayInstall() {
		return nil // it is offered again when the device may
	}
	job, err := s.job(from, &action)
	if err != nil {
		c.Report(action.ID, &payload.JobUpdate{Status: payload.JobRejected, Details: payload.JobDetails{Reason: err.Error()}})
		return c.sendReports(ctx, s)
	}
	c.Updater.Offer(job)
	return nil
}

// cancel ends an action, or tells the server that it is not being done.
func (c *Client) cancel(ctx context.Context, s *session, from *url.URL, to *link) error {
	var wanted cancellation
	if _, err := s.open(ctx, from, to, &wanted); err != nil {
		return fmt.Errorf("cancellation: %w", err)
	}
	stop := wanted.Cancel.Stop
	if c.Updater.Withdraw(update.HawkBit, stop) {
		c.canceled[stop] = wanted.ID
		return nil
	}
	return s.feedback(ctx, "cancelAction", wanted.ID, success("the action is not being done"))
}

// sendReports sends what the server has not got yet.
func (c *Client) sendReports(ctx context.Context, s *session) error {
	c.mu.Lock()
	waiting := maps.Clone(c.reports)
	c.mu.Unlock()
	for id, report := range waiting {
		err := c.sendReport(ctx, s, id, report)
		if refused, ok := errors.AsType[*statusError](err); ok && refused.isFinal() {
			c.Logger.Warn("the update server does not take the report of an action", "action", id, "error", err)
			err = nil // it has forgotten or closed the action
		}
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		c.mu.Lock()
		if c.reports[id] == report {
			delete(c.reports, id)
		}
		c.mu.Unlock()
	}
	return nil
}

// sendReport sends one report.
func (c *Client) sendReport(ctx context.Context, s *session, id string, report *payload.JobUpdate) error {
	canceled, wanted := c.canceled[id]
	delete(c.canceled, id)
	if report.Status == payload.JobCanceled && wanted {
		return s.feedback(ctx, "cancelAction", canceled, success(report.Details.Reason))
	}
	return s.feedback(ctx, "deploymentBase", id, feedbackOf(report))
}
