package mqtt

import (
	"context"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/transport"
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
		s, err := c.connect(ctx, to, identity{id: c.ClientID + "-login", largest: 2 * maxCommandBytes})
		if err != nil {
			logins[i].Error, logins[i].Hint = err.Error(), remedyFor(err, false)
			continue
		}
		s.paho.Disconnect(100)
		s.fail(errStopped)
	}
	return logins
}

// echoTimeout is how long a broker may take to pass a message on to who sent it.
const echoTimeout = 10 * time.Second

// Refused says what a broker that takes the client, by its address in a Login, does not let it do, a text for each thing: messages of the
// device, and what it subscribes to, with control the commands as well. A broker that cannot tell, which takes MQTT 5, refuses nothing. It
// sends empty messages that are not retained to the error topic and to one that is no command. It needs an open client; the context ends
// it.
func (c *Client) Refused(ctx context.Context, broker string, control bool) []string {
	at := slices.IndexFunc(c.addresses, func(to address.Address) bool { return to.String() == broker })
	if at < 0 {
		return nil
	}
	to := c.addresses[at]
	password, err := c.password(to)
	if err != nil {
		return nil // Login says so
	}
	conn, err := transport.Dial(ctx, to, c.TLS, c.ConnectTimeout)
	if err != nil {
		return nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	question := permissionQuery{
		ClientID: c.ClientID + "-login", User: c.user(to), Password: password,
		Filters: c.filters(control), Publish: c.topics.Error(), EchoTimeout: echoTimeout,
	}
	if control {
		question.Echo = c.topics.Set("", "doctor")
	}
	refused, err := question.run(conn, c.AckTimeout)
	if err != nil {
		return nil
	}
	return refused
}
