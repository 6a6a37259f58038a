// Package address parses the addresses of MQTT brokers.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/internal/redact"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// Address is a broker's address. String never contains the user or the password.
type Address struct {
	URL      *url.URL // with a port and without the user
	Network  string   // tcp, tls, ws or wss
	User     string
	Password credentials.Secret
}

// String returns the scheme, the host and the port.
func (a Address) String() string { return a.URL.Scheme + "://" + a.URL.Host }

// Parse parses scheme://[user:password@]host[:port][/path]. Without a scheme the text is host[:port] over plain TCP. Errors contain no
// password.
func Parse(text string) (Address, error) {
	if !strings.Contains(text, "://") {
		text = "tcp://" + text
	}
	shown := text
	if strings.Contains(text, "@") {
		shown = redact.Text(text)
	}
	u, err := url.Parse(text)
	if err != nil {
		// The error of url.Parse quotes its input, which may hold a password.
		var parse *url.Error
		if errors.As(err, &parse) && shown == text {
			err = parse.Err
		} else {
			err = errors.New("not a URL")
		}
		return Address{}, fmt.Errorf("broker %q: %w (write tcp://host:1883, tls://host:8883, ws://host/path or wss://host/path)", shown, err)
	}
	a := Address{URL: u}
	var port string
	switch u.Scheme {
	case "tcp", "mqtt":
		a.Network, port = "tcp", "1883"
	case "tls", "ssl", "mqtts":
		a.Network, port = "tls", "8883"
	case "ws":
		a.Network, port = "ws", "80"
	case "wss":
		a.Network, port = "wss", "443"
	default:
		return Address{}, fmt.Errorf("broker %q: unknown scheme %q (use tcp, tls, ws or wss)", shown, u.Scheme)
	}
	if u.Hostname() == "" {
		return Address{}, fmt.Errorf("broker %q: no host name", shown)
	}
	if number, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || number == 0) {
		return Address{}, fmt.Errorf("broker %q: no port %s (there are 1 to 65535)", shown, u.Port())
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	if u.User != nil {
		a.User = u.User.Username()
		password, _ := u.User.Password()
		a.Password = credentials.Secret(password)
		u.User = nil
	}
	return a, nil
}
