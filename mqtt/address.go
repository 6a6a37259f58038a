package mqtt

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// address is one broker. Its text never holds the user or the password.
type address struct {
	url      *url.URL // without the user
	network  string   // tcp, tls, ws or wss
	user     string
	password Secret
}

func (a address) String() string { return a.url.Scheme + "://" + a.url.Host }

// parseAddress reads scheme://[user:password@]host[:port][/path]. A text without a scheme is host[:port] over plain TCP.
func parseAddress(text string) (address, error) {
	if !strings.Contains(text, "://") {
		text = "tcp://" + text
	}
	shown := text
	if at := strings.LastIndex(shown, "@"); at >= 0 {
		shown = shown[:strings.Index(shown, "://")+3] + shown[at+1:]
	}
	u, err := url.Parse(text)
	if err != nil {
		// The error of url.Parse quotes its input, which may hold a password.
		var parse *url.Error
		if errors.As(err, &parse) && !strings.Contains(text, "@") {
			err = parse.Err
		} else {
			err = errors.New("not a URL")
		}
		return address{}, fmt.Errorf("broker %q: %w (write tcp://host:1883, tls://host:8883, ws://host/path or wss://host/path)", shown, err)
	}
	a := address{url: u}
	var port string
	switch u.Scheme {
	case "tcp", "mqtt":
		a.network, port = "tcp", "1883"
	case "tls", "ssl", "mqtts":
		a.network, port = "tls", "8883"
	case "ws":
		a.network, port = "ws", "80"
	case "wss":
		a.network, port = "wss", "443"
	default:
		return address{}, fmt.Errorf("broker %q: unknown scheme %q (use tcp, tls, ws or wss)", shown, u.Scheme)
	}
	if u.Hostname() == "" {
		return address{}, fmt.Errorf("broker %q: no host name", shown)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	if u.User != nil {
		a.user = u.User.Username()
		password, _ := u.User.Password()
		a.password = Secret(password)
		u.User = nil
	}
	return a, nil
}
