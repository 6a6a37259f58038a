package mqtt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// Access is where and how a Link logs in.
type Access struct {
	// Brokers are tcp://, tls://, ws:// or wss:// addresses in order of preference; credentials in an address override User and Password.
	Brokers []string
	User    string
	// Password, or a file that holds it and is read for each connection.
	Password     credentials.Secret
	PasswordFile string
	TLS          credentials.TLS
	// MaxPacket limits the packets sent to a broker, in bytes; larger messages are discarded. 0 detects the broker's own limit.
	MaxPacket int
}

// Check returns an error if the addresses are invalid or a file cannot be used. It connects to nothing.
func (a *Access) Check() error {
	if len(a.Brokers) == 0 {
		return errors.New("no broker address")
	}
	if _, err := a.addresses(); err != nil {
		return err
	}
	if _, err := a.TLS.Load(); err != nil {
		return err
	}
	_, err := credentials.ReadSecret(a.Password, a.PasswordFile)
	return err
}

func (a *Access) addresses() (all []address.Address, err error) {
	for _, text := range a.Brokers {
		parsed, err := address.Parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, parsed)
	}
	return all, nil
}

// Reconnect ends the connection as Close does, calls access, and connects with what that returns. Nothing that is queued is lost: events
// and the newest messages stay, and the retained ones are repeated at the new connection. The client must be running; ctx limits how long
// Reconnect waits for Run. After an error the access before is in force; access was not called if ctx has ended.
func (c *Client) Reconnect(ctx context.Context, access func() Access) error {
	done := make(chan error, 1)
	change := func() { done <- c.setAccess(access()) }
	select {
	case c.changes <- change:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closing.Done():
		return errors.New("reconnect mqtt: client is closed")
	}
}

// setAccess changes the access. There is no connection.
func (c *Client) setAccess(next Access) error {
	addresses, err := next.addresses()
	if err != nil {
		return fmt.Errorf("reconnect mqtt: %w", err)
	}
	c.Access, c.Link.addresses = next, addresses
	c.sizes.SetMaximum(next.MaxPacket)
	c.discovery.setLimit(next.MaxPacket)
	c.Link.mu.Lock()
	defer c.Link.mu.Unlock()
	c.reasons = map[string]string{}
	return nil
}

func (a *Access) user(to address.Address) string { return cmp.Or(to.User, a.User) }

func (a *Access) password(to address.Address) (string, error) {
	if to.Password != "" {
		return string(to.Password), nil
	}
	return credentials.ReadSecret(a.Password, a.PasswordFile)
}
