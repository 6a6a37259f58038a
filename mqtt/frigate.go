package mqtt

import (
	"context"
	"errors"
	"time"

	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// frigateSuffix follows the client identifier in that of the connection for Frigate's topics.
const frigateSuffix = "-frigate"

// Identifiers returns the client identifiers of the connections that remain open. They are known after Open.
func (l *Link) Identifiers() []string { return []string{l.ClientID, l.ClientID + frigateSuffix} }

// frigateAvailable maintains Frigate's availability topic until ctx ends: online, stopped after a clean end, offline when the client's
// connection is lost (the cause of ctx) or the process dies. It uses a connection of its own, because a connection has only one last will.
func (l *Link) frigateAvailable(ctx context.Context, to address.Address, subject string) {
	as := identity{id: l.ClientID + frigateSuffix, will: subject, largest: 2 * command.MaxBytes}
	reason := ""
	for failures := 0; ctx.Err() == nil; failures++ {
		s, err := l.connect(ctx, to, as)
		if err == nil {
			failures = 0
			err = s.holdOnline(ctx, as.will)
		}
		if ctx.Err() != nil {
			return
		}
		if err.Error() != reason {
			reason = err.Error()
			l.Logger.Warn("mqtt cannot publish its availability in Frigate's topics", "topic", as.will, "broker", to.String(), "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Exponential{Min: l.RetryMin, Max: l.RetryMax}.After(failures)):
		}
	}
}

// errMainConnectionLost closes the connection with Frigate's last will when the client's own connection is lost.
var errMainConnectionLost = errors.New("the client's connection is lost")

// holdOnline keeps a retained topic at "online" until the connection is lost or ctx ends and then publishes "stopped", except if the cause
// is errMainConnectionLost: the broker then publishes the last will.
func (s *session) holdOnline(ctx context.Context, subject string) error {
	defer s.paho.Disconnect(0)
	defer s.fail(errStopped)
	go s.callPaho()
	limit := time.NewTimer(s.link.AckTimeout)
	defer limit.Stop()
	token := s.publish(publication{subject, true, []byte(topic.Online)}, limit.C)
	if token == nil {
		return s.noAnswerError()
	}
	select {
	case <-token.Done():
	case <-limit.C:
		return s.noAnswerError()
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), errMainConnectionLost) {
		return errMainConnectionLost
	}
	farewell := time.NewTimer(shutdownLimit)
	defer farewell.Stop()
	if token := s.publish(publication{subject, true, []byte(topic.Stopped)}, farewell.C); token != nil {
		select {
		case <-token.Done():
			s.paho.Disconnect(uint(shutdownLimit.Milliseconds() / 8))
		case <-farewell.C:
		case <-s.done:
		}
	}
	return errStopped
}

// noAnswerError returns why a message was not accepted.
func (s *session) noAnswerError() error {
	if isClosed(s.done) {
		return s.err
	}
	return errors.New("the broker does not answer")
}
