package mqtt

import (
	"context"

	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/remedy"
)

// Login is how one broker answered; it holds no secret.
type Login struct {
	Broker string
	Error  string // empty when the broker takes the client
	Hint   string // what to do about it, where that is known
}

// Login tries each broker as Run would and publishes nothing. It uses a client id of its own, so that a running daemon keeps its
// connection. It needs an open client; the context ends it.
func (c *Client) Login(ctx context.Context) []Login {
	logins := make([]Login, len(c.addresses))
	for i, to := range c.addresses {
		logins[i].Broker = to.String()
		s, err := c.connect(ctx, to, identity{id: c.ClientID + "-login", largest: 2 * command.MaxBytes})
		if err != nil {
			logins[i].Error, logins[i].Hint = err.Error(), remedy.Of(err, false)
			continue
		}
		s.paho.Disconnect(100)
		s.fail(errStopped)
	}
	return logins
}
