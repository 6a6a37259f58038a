package mqtt

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/command"
)

// Connection is the state of the client's connection. It contains no secrets.
type Connection struct {
	Connected bool
	Broker    string    // address in use, or tried last
	Since     time.Time // of the last change of Connected
	Error     string    // why it is not connected, empty when it is or has not tried
	Spool     string    // why new events are in memory only; empty if they are stored, or if no directory is configured
	Conflict  string    // another machine that publishes under the same device name; empty for none
}

// retryState is the state that Run keeps between connection attempts.
type retryState struct {
	failures int
	blocked  []time.Time // by address: not to be tried before, because the login was refused
}

// attempt tries the brokers in order and serves the first that takes the client. It returns how long to wait before the next attempt.
func (l *Link) attempt(ctx context.Context, t *retryState) time.Duration {
	const stableAfter = 10 * time.Second // a connection that lasted this long resets the back-off
	tried := false
	for i, to := range l.addresses {
		if time.Now().Before(t.blocked[i]) {
			continue
		}
		s, err := l.connect(ctx, to, identity{
			id: l.ClientID, will: l.device.availability(), inbound: inboundLimit, largest: 2 * command.MaxBytes,
		})
		if ctx.Err() != nil {
			if err == nil {
				s.fail(errStopped)
				s.paho.Disconnect(0)
			}
			return 0
		}
		if err != nil {
			l.disconnected(to, "mqtt cannot connect", err)
			if loginRefused(err) {
				t.blocked[i] = time.Now().Add(backoff.Jitter(l.RefusedRetry))
			} else {
				tried = true
			}
			continue
		}
		start := time.Now()
		l.connected(to)
		err = l.serve(ctx, s, to)
		if ctx.Err() != nil {
			l.disconnected(to, "", nil)
			return 0
		}
		l.disconnected(to, "mqtt lost the connection", l.explainLoss(s, to.String(), err))
		if time.Since(start) >= stableAfter {
			t.failures = 0
		}
		tried = true
		break
	}
	if !tried { // all of them are blocked
		return time.Until(slices.MinFunc(t.blocked, time.Time.Compare))
	}
	t.failures++
	return backoff.Exponential{Min: l.RetryMin, Max: l.RetryMax}.After(t.failures - 1)
}

// serve runs a connection, and what the device does meanwhile.
func (l *Link) serve(ctx context.Context, s *session, to address.Address) error {
	served, lost := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	background.Go(func() { l.device.accompany(served, to) })
	err := s.serve(ctx)
	lost(errMainConnectionLost) // no cause any more where ctx has ended
	background.Wait()
	return err
}

// connectionState returns the state of the connection, without Conflict.
func (l *Link) connectionState() Connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	connection := l.connection
	connection.Spool = l.events.Stats().Error
	return connection
}

// Online reports whether a broker is connected.
func (l *Link) Online() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connection.Connected
}

func (l *Link) connected(to address.Address) {
	l.mu.Lock()
	l.connects++
	l.connection = Connection{Connected: true, Broker: to.String(), Since: time.Now()}
	delete(l.reasons, to.String())
	l.mu.Unlock()
	l.Logger.Info("mqtt connected", "broker", to.String())
}

// disconnected records why the connection failed and logs the reason if it is new for this broker.
func (l *Link) disconnected(to address.Address, what string, err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
		if hint := remedyFor(err, l.Online()); hint != "" {
			reason += " (" + hint + ")"
		}
	}
	l.mu.Lock()
	known := l.reasons[to.String()] == reason
	l.reasons[to.String()] = reason
	since := l.connection.Since
	if l.connection.Connected || since.IsZero() {
		since = time.Now()
	}
	l.connection = Connection{Broker: to.String(), Since: since, Error: reason}
	l.mu.Unlock()
	if err != nil && !known {
		l.Logger.Warn(what, "broker", to.String(), "error", reason)
	}
}
