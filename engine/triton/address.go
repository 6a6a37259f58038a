package triton

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

// address is one model on one server.
type address struct {
	grpc, tls      bool
	host           string // with a port
	model, version string // version is empty for the server's choice
}

// String returns host and port.
func (a address) String() string { return a.host }

// schemes lists the URL schemes with their protocol and Triton's default port.
var schemes = map[string]struct {
	grpc, tls bool
	port      string
}{
	"grpc": {grpc: true, port: "8001"}, "grpcs": {grpc: true, tls: true, port: "8001"},
	"http": {port: "8000"}, "https": {tls: true, port: "8000"},
}

const addressHint = "write grpc://host:8001/model, several separated by commas; grpcs://, http:// and https:// also work"

// Check returns an error for invalid addresses, with a hint that shows the form.
func Check(addresses string) error {
	_, err := parse(addresses)
	return err
}

// parse parses a comma-separated list of addresses.
func parse(text string) ([]address, error) {
	var all []address
	for part := range strings.SplitSeq(text, ",") {
		a, err := parseOne(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	if len(all) > maxEndpoints {
		return nil, addressError("%d servers exceed the limit of %d", len(all), maxEndpoints)
	}
	return all, nil
}

func addressError(format string, arguments ...any) error {
	return &engine.Error{Op: "open", Backend: Name, Kind: engine.ErrUnsupported, Message: fmt.Sprintf(format, arguments...), Hint: addressHint}
}

// parseOne parses scheme://host[:port]/model[/version]. Its errors contain no password.
func parseOne(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil {
		if strings.Contains(text, "@") {
			return address{}, &engine.Error{
				Op: "open", Backend: Name, Kind: engine.ErrUnsupported, Message: "an address must not contain a user or password",
				Hint: "set remote.token_file or remote.password_file",
			}
		}
		return address{}, addressError("%q is not an address", text)
	}
	scheme, known := schemes[u.Scheme]
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case !known:
		return address{}, addressError("%q has no supported scheme", text)
	case u.Hostname() == "":
		return address{}, addressError("%q has no host", text)
	case u.RawQuery != "" || u.Fragment != "" || len(path) > 2:
		return address{}, addressError("%q has more than a host, a model and a version", text)
	case path[0] == "":
		return address{}, addressError("%q names no model", text)
	}
	a := address{grpc: scheme.grpc, tls: scheme.tls, host: u.Host, model: path[0]}
	if u.Port() == "" {
		a.host = net.JoinHostPort(u.Hostname(), scheme.port)
	}
	if len(path) == 2 {
		a.version = path[1]
	}
	return a, nil
}

// loopback reports whether the host is localhost or a loopback address.
func (a address) loopback() bool {
	host, _, err := net.SplitHostPort(a.host)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
