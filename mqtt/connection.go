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
func (c *Client) attempt(ctx context.Context, t *retryState) time.Duration {
	const stableAfter = 10 * time.Second // a connection that lasted this long resets the back-off
	tried := false
	for i, to := range c.addresses {
		if time.Now().Before(t.blocked[i]) {
			continue
		}
		s, err := c.connect(ctx, to, identity{
			id: c.ClientID, will: c.topics.Available(), inbound: inboundLimit, largest: 2 * command.MaxBytes,
		})
		if ctx.Err() != nil {
			if err == nil {
				s.fail(errStopped)
				s.paho.Disconnect(0)
			}
			return 0
		}
		if err != nil {
			c.disconnected(to, "mqtt cannot connect", err)
			if loginRefused(err) {
				t.blocked[i] = time.Now().Add(backoff.Jitter(c.RefusedRetry))
			} else {
				tried = true
			}
			continue
		}
		start := time.Now()
		c.connected(to)
		err = c.serve(ctx, s, to)
		if ctx.Err() != nil {
			c.disconnected(to, "", nil)
			return 0
		}
		c.disconnected(to, "mqtt lost the connection", c.explainLoss(s, to.String(), err))
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
	return backoff.Exponential{Min: c.RetryMin, Max: c.RetryMax}.After(t.failures - 1)
}

// serve runs a connection, maintains Frigate's availability topic meanwhile, and clears stale topics of earlier processes in the
// background.
func (c *Client) serve(ctx context.Context, s *session, to address.Address) error {
	served, lost := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	background.Go(func() { c.clearStale(served, to) })
	background.Go(func() { c.repeatMachine(served.Done()) })
	if c.Frigate != "" {
		background.Go(func() { c.frigateAvailable(served, to) })
	}
	err := s.serve(ctx)
	lost(errMainConnectionLost) // no cause any more where ctx has ended
	background.Wait()
	return err
}

// Connection returns the state of the connection.
func (c *Client) Connection() Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	connection := c.connection
	connection.Spool = c.events.Stats().Error
	if other := c.conflict.current(time.Now()); other != nil {
		connection.Conflict = other.String()
	}
	return connection
}

// Online reports whether a broker is connected.
func (c *Client) Online() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connection.Connected
}

func (c *Client) connected(to address.Address) {
	c.mu.Lock()
	c.connects++
	c.connection = Connection{Connected: true, Broker: to.String(), Since: time.Now()}
	delete(c.reasons, to.String())
	c.mu.Unlock()
	c.Logger.Info("mqtt connected", "broker", to.String())
}

// disconnected records why the connection failed and logs the reason if it is new for this broker.
func (c *Client) disconnected(to address.Address, what string, err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
		if hint := remedyFor(err, c.Connection().Connected); hint != "" {
			reason += " (" + hint + ")"
		}
	}
	c.mu.Lock()
	known := c.reasons[to.String()] == reason
	c.reasons[to.String()] = reason
	since := c.connection.Since
	if c.connection.Connected || since.IsZero() {
		since = time.Now()
	}
	c.connection = Connection{Broker: to.String(), Since: since, Error: reason}
	c.mu.Unlock()
	if err != nil && !known {
		c.Logger.Warn(what, "broker", to.String(), "error", reason)
	}
}
