package rtsp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/bluenviron/gortsplib/v5/pkg/liberrors"

	"github.com/edge-infer/edge-infer/capture"
)

// ErrRefused reports that the camera and this client are incompatible; another RTSP client may succeed.
var ErrRefused = errors.New("the camera is incompatible with this RTSP client")

// client is a connection to a camera whose video has been set up, but does not play yet.
type client struct {
	uri      capture.URI
	client   *gortsplib.Client
	video    *description.Media
	location string                        // target of the redirect that the camera has answered
	request  base.Method                   // the last one
	admitted bool                          // the camera has described its stream, so that the credentials are right
	last     atomic.Pointer[base.Response] // the camera's last answer; nil before
}

// dial connects to a camera and sets its video up. The connection ends with the context. Redirects are followed, and credentials sent only
// to the host that they were given for.
func dial(ctx context.Context, u capture.URI, options Options) (*client, error) {
	start, err := url.Parse(u.Address)
	if err != nil {
		return nil, u.NewError("open", capture.ErrURI, "not a valid URL", "", nil)
	}
	trusted, err := newTrust(u.Certificate)
	if err != nil {
		return nil, u.NewError("open", capture.ErrUnavailable, "the file with the camera's CA cannot be read", "", err)
	}
	for at, hops := start, 0; hops <= capture.MaxRedirects; hops++ {
		c := &client{uri: u}
		given := start.User != nil && capture.SameHost(at, start)
		target := *at
		target.User = nil
		if given {
			target.User = start.User
		}
		err := c.setUp(ctx, &target, trusted, options)
		if err == nil {
			return c, nil
		}
		c.close()
		if c.location == "" {
			return nil, c.explain(ctx, err, given)
		}
		at, err = redirected(at, c.location)
		if err != nil {
			return nil, u.NewError("open", capture.ErrUnavailable, "", "", err)
		}
	}
	return nil, u.NewError("open", capture.ErrUnavailable, "", "use the camera's final address", capture.ErrRedirects)
}

// redirected returns the target of a redirect.
func redirected(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil || to.Hostname() == "" || to.Scheme != "rtsp" && to.Scheme != "rtsps" {
		return nil, errNotRTSPAddress
	}
	if from.Scheme == "rtsps" && to.Scheme == "rtsp" {
		return nil, errors.New("the server redirects from an encrypted to an unencrypted address")
	}
	return to, nil
}

// setUp connects to an address without following redirects.
func (c *client) setUp(ctx context.Context, at *url.URL, trusted trust, options Options) error {
	protocol := map[string]gortsplib.Protocol{
		"": gortsplib.ProtocolTCP, "tcp": gortsplib.ProtocolTCP, "udp": gortsplib.ProtocolUDP, "multicast": gortsplib.ProtocolUDPMulticast,
	}[c.uri.Transport]
	library := &gortsplib.Client{
		Scheme: at.Scheme, Host: at.Host, TLSConfig: trusted.config(at.Hostname()), Protocol: &protocol, UserAgent: "edge-infer",
		// The decoder's time-out comes first and is the one that users set.
		ReadTimeout: max(options.OpenTimeout, 2*options.ReadTimeout), WriteTimeout: options.OpenTimeout,
		DialContext: func(dialing context.Context, network, address string) (net.Conn, error) {
			return dialUntil(ctx, dialing, options.dial, network, address)
		},
		OnRequest: func(request *base.Request) { c.request = request.Method },
		OnResponse: func(answer *base.Response) {
			c.last.Store(answer)
			mend(c.request, answer)
			if answer.StatusCode >= 300 && answer.StatusCode < 400 && len(answer.Header["Location"]) == 1 {
				c.location = answer.Header["Location"][0]
				delete(answer.Header, "Location") // the library would follow it without limit and send the password along
			}
		},
		// The decoder counts damaged images.
		OnPacketsLost: func(uint64) {},
		OnDecodeError: func(error) {},
	}
	if err := library.Start(); err != nil {
		return err
	}
	c.client = library
	described, _, err := library.Describe((*base.URL)(at))
	if err != nil {
		return err
	}
	c.admitted = true
	for _, media := range described.Medias {
		if media.Type == description.MediaTypeVideo && !media.IsBackChannel {
			c.video = media
			// Mode 0, which cameras mean that leave it out, is a part of mode 1, and the library restricts it.
			if f, ok := media.Formats[0].(*format.H264); ok && f.PacketizationMode == 0 {
				f.PacketizationMode = 1
			}
			_, err = library.Setup(described.BaseURL, media, 0, 0)
			return err
		}
	}
	return errNoVideo
}

var (
	errNoVideo        = errors.New("the stream has no video")
	errNotRTSPAddress = errors.New("the server redirects to an address that is not RTSP")
)

// dialUntil dials a connection that closes when ctx ends; dialing bounds the dialing alone. dial may be nil.
func dialUntil(ctx, dialing context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), network,
	address string,
) (net.Conn, error) {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	dialing, cancel := context.WithCancel(dialing)
	defer context.AfterFunc(ctx, cancel)()
	connection, err := dial(dialing, network, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = connection.Close() })
	return connection, nil
}

// explain returns the error of a connection that failed; given reports whether credentials were sent.
func (c *client) explain(ctx context.Context, err error, given bool) error {
	u, last := c.uri, c.last.Load()
	unavailable := func(message, hint string, cause error) error {
		return u.NewError("open", capture.ErrUnavailable, message, hint, cause)
	}
	answers := func() error { return unavailable("the server answers "+statusText(last), "check the path", nil) }
	var status liberrors.ErrClientBadStatusCode // then last has this status
	var certificate *certificateError
	var network net.Error
	switch {
	case errors.As(err, &certificate):
		hint := "append #certificate=sha256:" + certificate.fingerprint +
			" to the address if this is your camera, or #certificate=FILE with its CA"
		return unavailable("", hint, certificate)
	case errors.As(err, &status) && status.Code == 401 && c.admitted: // a new challenge, which the library does not answer
		return unavailable("", "", refusal{errors.New("it wants the credentials again for each request")})
	case errors.As(err, &status) && (status.Code == 401 || status.Code == 403):
		return u.Denied(given, statusText(last))
	case errors.As(err, &status) && status.Code >= 300 && status.Code < 400:
		return unavailable("", "", errNotRTSPAddress)
	case errors.As(err, &status):
		return answers()
	case ctx.Err() != nil, last == nil && errors.As(err, &network) && network.Timeout():
		return unavailable("the server does not answer", "check that the camera is on", nil)
	case errors.Is(err, errNoVideo):
		return u.NewError("open", capture.ErrFormat, errNoVideo.Error(), "use another of the camera's addresses", nil)
	case last == nil && errors.As(err, &network) && !errors.Is(err, io.EOF):
		return unavailable("", "check the address and that the camera is on", capture.NetworkCause(err))
	case last == nil:
		return unavailable("", "check that this is an RTSP server", refusal{errors.New("the answer is not RTSP")})
	case last.StatusCode == 401:
		denied := u.Denied(given, statusText(last))
		denied.Err = refusal{errors.New("it closes the connection after its challenge")}
		return denied
	case last.StatusCode >= 400: // and then closed the connection
		return answers()
	}
	return unavailable("", "", refusal{cause(err)})
}

// cause returns why a connection failed. It is never io.EOF, which means the end of a file to package capture.
func cause(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the camera closed the connection")
	}
	return capture.NetworkCause(err)
}

// refusal is an error that is ErrRefused too.
type refusal struct{ error }

func (r refusal) Unwrap() error        { return r.error }
func (r refusal) Is(target error) bool { return target == ErrRefused }

// statusText returns status and printable reason of an answer, as in "404 Not Found".
func statusText(answer *base.Response) string {
	printable := func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}
	return strings.TrimSpace(strconv.Itoa(int(answer.StatusCode)) + " " + strings.Map(printable, answer.StatusMessage))
}

func (c *client) close() {
	if c.client != nil {
		c.client.Close()
	}
}
