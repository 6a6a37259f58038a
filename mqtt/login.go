package mqtt

import (
	"context"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/transport"
)

// Login is the result of a login attempt at one broker. It contains no secrets.
type Login struct {
	Broker string
	Error  string // empty when the broker takes the client
	Hint   string // what to do about it, where that is known
}

// Login tries to log in to each broker without publishing. It uses its own client id, so that a running daemon keeps its connection. The
// client must be open.
func (l *Link) Login(ctx context.Context) []Login {
	logins := make([]Login, len(l.addresses))
	for i, to := range l.addresses {
		logins[i].Broker = to.String()
		s, err := l.connect(ctx, to, identity{id: l.ClientID + "-login", largest: 2 * command.MaxBytes})
		if err != nil {
			logins[i].Error, logins[i].Hint = err.Error(), remedyFor(err, false)
			continue
		}
		s.paho.Disconnect(100)
		s.fail(errStopped)
	}
	return logins
}

// echoTimeout bounds how long a broker may take to deliver a message back to its sender.
const echoTimeout = 10 * time.Second

// Refused returns the permissions that the client lacks at a broker (the address of a Login), one text each: publishing, subscribing and,
// with control, receiving commands. It returns nil if the broker does not support MQTT 5. The check publishes empty, non-retained messages
// to the error topic and to an unused command topic. The client must be open.
func (c *Client) Refused(ctx context.Context, broker string, control bool) []string {
	at := slices.IndexFunc(c.addresses, func(to address.Address) bool { return to.String() == broker })
	if at < 0 {
		return nil
	}
	to := c.addresses[at]
	password, err := c.password(to)
	if err != nil {
		return nil // Login reports it
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
