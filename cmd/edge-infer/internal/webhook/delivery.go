package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

const (
	// answerLimit is the number of bytes of an answer that are read, so that its connection can be used again.
	answerLimit = 64 << 10
	// longestPause bounds the pause that a receiver may ask for.
	longestPause = time.Hour
)

// delivery is the state of Run's goroutine.
type delivery struct {
	*Sender
	failures int    // attempts in a row that failed
	current  uint64 // number of the event that was tried last
	refused  int    // answers with an error to it
	buffer   []byte
}

// failure is the reason of a failed attempt.
type failure struct {
	error
	answered bool          // by the receiver itself, so that the event may be at fault
	gone     bool          // 410
	pause    time.Duration // that the receiver asks for, 0 for none
}

// next delivers the oldest event, or waits. It returns false when ctx has ended.
func (d *delivery) next(ctx context.Context) bool {
	event, found := d.events.Next(0, d.buffer[:0])
	d.buffer = event.Buffer
	if !found {
		return d.wait(ctx, nil)
	}
	if d.disabled() {
		d.events.Drop(event.Number)
		return true
	}
	failed := d.send(ctx, &event)
	if ctx.Err() != nil {
		if failed == nil {
			d.events.Acknowledge(event.Number)
		}
		return false
	}
	if failed == nil {
		d.delivered(&event)
		return true
	}
	pause := d.failed(&event, failed)
	if pause == 0 {
		return true
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	return d.wait(ctx, timer.C)
}

// wait returns at the time, or when there may be an event if that is nil; false when ctx has ended.
func (d *delivery) wait(ctx context.Context, until <-chan time.Time) bool {
	wake := d.wake
	if until != nil {
		wake = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-until:
	}
	return true
}

// delivered removes an event from the queue.
func (d *delivery) delivered(event *spool.Event) {
	d.events.Acknowledge(event.Number)
	d.failures = 0
	d.mu.Lock()
	before := d.problem
	d.problem = ""
	d.mu.Unlock()
	if before != "" {
		d.Logger.Info("webhook delivers again", "receiver", d.host)
	}
}

// failed records a failed attempt and returns the pause before the next one, 0 if the event is given up.
func (d *delivery) failed(event *spool.Event, why *failure) time.Duration {
	d.mu.Lock()
	before := d.problem
	d.problem = why.Error()
	d.mu.Unlock()
	if before != why.Error() {
		d.Logger.Warn("webhook cannot deliver", "receiver", d.host, "error", why)
	}
	if d.current != event.Number {
		d.current, d.refused = event.Number, 0
	}
	switch {
	case why.gone:
		d.change(func(s *state) { s.Gone = d.receiver() })
		if d.Gone != nil {
			d.Logger.Info("webhook removed: its receiver is gone", "receiver", d.host)
			d.Gone()
			return 0
		}
		d.Logger.Error("webhook disabled: its receiver has answered 410 Gone (remove it, or give it another url)", "receiver", d.host)
		return 0
	case why.answered:
		d.refused++
	}
	d.failures++
	if d.refused >= attempts {
		d.events.Drop(event.Number)
		d.change(func(s *state) {
			s.Dead++
			s.Last, s.Reason = time.Now(), why.Error()
		})
		d.Logger.Error("webhook: event not delivered, its receiver refuses it", "receiver", d.host, "event", eventID(event), "attempts", attempts,
			"error", why)
		return 0
	}
	return max(d.retry.After(d.failures-1), why.pause)
}

// drain delivers queued events once each, until one fails.
func (d *delivery) drain(ctx context.Context) {
	for ctx.Err() == nil && !d.disabled() {
		event, found := d.events.Next(0, d.buffer[:0])
		d.buffer = event.Buffer
		if !found || d.send(ctx, &event) != nil {
			return
		}
		d.delivered(&event)
	}
}

// ownID precedes, in the topic of a queued event, an id that the event had before it was queued.
const ownID = "="

// eventID is the webhook-id of an event.
func eventID(event *spool.Event) string {
	run, _, _ := strings.Cut(event.Topic, " ")
	if own, found := strings.CutPrefix(run, ownID); found {
		return own
	}
	return run + "-" + strconv.FormatUint(event.Number, 10)
}

// send makes one attempt. It returns nil if the receiver has taken the event.
func (s *Sender) send(ctx context.Context, event *spool.Event) *failure {
	body := bytes.Clone(event.Payload) // the transport may read it for longer than the call
	_, object, _ := strings.Cut(event.Topic, " ")
	answer, err := s.attempt(ctx, eventID(event), object, body)
	if err != nil {
		return &failure{error: err}
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, answerLimit) // the status has arrived, and counts
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return nil
	}
	why := &failure{error: fmt.Errorf("the receiver answers %s", statusText(answer.StatusCode)), gone: answer.StatusCode == http.StatusGone}
	why.gone = why.gone || s.Format == config.WebPush && answer.StatusCode == http.StatusNotFound // an expired subscription
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // it is busy or away
	default:
		why.answered = true
	}
	why.pause = retryAfter(answer.Header.Get("Retry-After"))
	return why
}

// attempt sends an event in the format of the receiver. A notification whose image is refused is sent without it.
func (s *Sender) attempt(ctx context.Context, id, object string, body []byte) (*http.Response, error) {
	if s.Format == config.WebPush {
		return s.push(ctx, body)
	}
	if s.Format != config.Ntfy {
		return s.endpoint().Post(ctx, id, withLinks(body, s.links(ctx, object)))
	}
	image := s.image(ctx, object)
	answer, err := s.ntfy(ctx, body, image)
	if err == nil && len(image) > 0 && refusesImage(answer.StatusCode) {
		_ = answer.Body.Close()
		answer, err = s.ntfy(ctx, body, nil)
	}
	return answer, err
}

// statusText is a status without the receiver's own words.
func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// retryAfter returns the pause of a Retry-After header, within bounds; 0 if it has none.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil {
		at, err := http.ParseTime(header)
		if err != nil {
			return 0
		}
		return min(max(time.Until(at), 0), longestPause)
	}
	return min(time.Duration(max(seconds, 0))*time.Second, longestPause)
}

// links calls Links, for a limited time.
func (s *Sender) links(ctx context.Context, object string) Links {
	if s.Links == nil {
		return Links{}
	}
	return ask(s, func() Links { return s.Links(ctx, object) })
}

// image calls Image, for a limited time.
func (s *Sender) image(ctx context.Context, object string) []byte {
	if s.Image == nil {
		return nil
	}
	return ask(s, func() []byte { return s.Image(ctx, object) })
}

// ask returns what the event store answers, or nothing if it does not soon, or while an earlier question hangs.
func ask[T any](s *Sender, question func() T) (answer T) {
	if !s.asking.CompareAndSwap(false, true) {
		return answer
	}
	found := make(chan T, 1)
	go func() {
		answer := question()
		s.asking.Store(false)
		found <- answer
	}()
	limit := time.NewTimer(askLimit)
	defer limit.Stop()
	select {
	case answer = <-found:
	case <-limit.C:
	}
	return answer
}

// withLinks adds the paths to the event in a body, which ends with two braces and is changed.
func withLinks(body []byte, links Links) []byte {
	if links == (Links{}) || !bytes.HasSuffix(body, []byte("}}")) {
		return body
	}
	body = body[:len(body)-2]
	for _, link := range [...]struct{ key, path string }{{`,"frame":`, links.Frame}, {`,"crop":`, links.Crop}, {`,"clip":`, links.Clip}} {
		if link.path != "" {
			body = payload.AppendString(append(body, link.key...), link.path)
		}
	}
	return append(body, "}}"...)
}
