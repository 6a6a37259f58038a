package source

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
)

const streamHint = "check whether ffplay or VLC can play it"

// openRTSP uses FFmpeg, which has timeouts of its own, or GStreamer if that has JetPack's hardware decoder.
func openRTSP(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	address, err := describe(ctx, u, options.OpenTimeout)
	if err != nil {
		return nil, err
	}
	jetson := FindPlugin(pluginDecoder) != "" && gocv.VideoRegistry.HasBackend(gocv.VideoCaptureGstreamer)
	var v *video
	if options.backend == gstreamer || options.backend == "" && (jetson || !gocv.VideoRegistry.HasBackend(gocv.VideoCaptureFFmpeg)) {
		v, err = openGStreamer(u, rtspPipeline(address, options.EveryFrame, jetson), options)
	} else {
		v, err = openVideo(u, address, gocv.VideoCaptureFFmpeg, options)
	}
	if err != nil {
		return nil, withHint(err, streamHint)
	}
	return v, nil
}

// describe queries the server before a decoder does, and returns the stream's final address. It distinguishes what OpenCV only reports as a
// failure to open: a server that is down, refused credentials, and endless redirects, which FFmpeg would follow without a pause. It also
// protects GStreamer from a silent server: OpenCV 4.6 then hangs in about 1 % of its opens.
func describe(ctx context.Context, u capture.URI, timeout time.Duration) (string, error) {
	start, err := url.Parse(u.Address)
	if err != nil {
		return "", u.NewError("open", capture.ErrURI, "not a valid URL", "", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	login, given := credentialsOf(start)
	for at, hops := start, 0; hops <= maxRedirects; hops++ {
		given := given && sameHost(at, start)
		reply, err := describeRTSP(ctx, at, login, given)
		switch {
		case ctx.Err() != nil:
			return "", u.NewError("open", capture.ErrUnavailable, "the server does not answer", "check that the camera is on", nil)
		case errors.Is(err, errNotRTSP):
			return "", u.NewError("open", capture.ErrUnavailable, "", "check that this is an RTSP server", err)
		case err != nil:
			return "", u.NewError("open", capture.ErrUnavailable, "", "check the address and that the camera is on", networkError(err))
		case reply.code == 401 && reply.unsupportedAuth:
			return decoderAddress(at, start), nil // FFmpeg may support it
		case reply.code == 401 || reply.code == 403:
			return "", denied(u, given, reply.status())
		case reply.code >= 300 && reply.code < 400:
			at, err = redirected(at, reply.header.Get("Location"))
			if err != nil {
				return "", u.NewError("open", capture.ErrUnavailable, "", "", err)
			}
		case reply.code >= 400:
			return "", u.NewError("open", capture.ErrUnavailable, "the server answers "+reply.status(), "check the path", nil)
		default:
			return decoderAddress(at, start), nil
		}
	}
	return "", u.NewError("open", capture.ErrUnavailable, "", "use the camera's final address", errRedirects)
}

// redirected returns the target of a redirect.
func redirected(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil || location == "" || to.Hostname() == "" || to.Scheme != "rtsp" && to.Scheme != "rtsps" {
		return nil, errors.New("the server redirects to an address that is not RTSP")
	}
	return to, nil
}

// decoderAddress returns the address, with the credentials if the host is still the same.
func decoderAddress(at, start *url.URL) string {
	to := *at
	if sameHost(at, start) {
		to.User = start.User
	}
	return to.String()
}

// rtspReply is a server's response.
type rtspReply struct {
	code            int
	reason          string
	header          http.Header
	unsupportedAuth bool // the authentication scheme is not supported
}

func (r rtspReply) status() string { return strings.TrimSpace(strconv.Itoa(r.code) + " " + r.reason) }

var errNotRTSP = errors.New("the answer is not RTSP")

// describeRTSP requests the description of a stream, first without credentials and again with them if the server wants them.
func describeRTSP(ctx context.Context, address *url.URL, login credentials, given bool) (rtspReply, error) {
	target := *address
	target.User = nil
	connection, err := dialRTSP(ctx, &target)
	if err != nil {
		return rtspReply{}, err
	}
	defer connection.Close()
	reply, err := connection.describe(target.String(), "")
	if err != nil || reply.code != 401 || !given {
		return reply, err
	}
	authorization := login.authorization(reply.header, "DESCRIBE", target.String())
	if authorization == "" {
		reply.unsupportedAuth = true
		return reply, nil
	}
	// A challenge may be valid for one connection only. If the server has closed it, a new connection is tried.
	reply, err = connection.describe(target.String(), authorization)
	if err == nil || ctx.Err() != nil {
		return reply, err
	}
	another, err := dialRTSP(ctx, &target)
	if err != nil {
		return rtspReply{}, err
	}
	defer another.Close()
	return another.describe(target.String(), authorization)
}

// rtspConnection is a connection to an RTSP server that closes with its context.
type rtspConnection struct {
	net.Conn
	reader   *textproto.Reader
	requests int
}

// maxReplies bounds the bytes read per connection.
const maxReplies = 128 << 10

func dialRTSP(ctx context.Context, target *url.URL) (*rtspConnection, error) {
	port := target.Port()
	if port == "" {
		port = map[string]string{"rtsp": "554", "rtsps": "322"}[target.Scheme]
	}
	plain, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(target.Hostname(), port))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = plain.Close() }) // describe cancels the context
	connection := plain
	if target.Scheme == "rtsps" {
		// Cameras use self-signed certificates, and FFmpeg does not check them either.
		connection = tls.Client(connection, &tls.Config{ServerName: target.Hostname(), InsecureSkipVerify: true})
	}
	return &rtspConnection{Conn: connection, reader: textproto.NewReader(bufio.NewReader(io.LimitReader(connection, maxReplies)))}, nil
}

// describe sends a request and reads the response.
func (c *rtspConnection) describe(address, authorization string) (rtspReply, error) {
	c.requests++
	request := "DESCRIBE " + address + " RTSP/1.0\r\nCSeq: " + strconv.Itoa(c.requests) +
		"\r\nAccept: application/sdp\r\nUser-Agent: edge-infer\r\n"
	if authorization != "" {
		request += "Authorization: " + authorization + "\r\n"
	}
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		return rtspReply{}, err
	}
	return readReply(c.reader)
}

// readReply reads status, header and body of a response. An error response may consist of the status only.
func readReply(reader *textproto.Reader) (rtspReply, error) {
	line, err := reader.ReadLine()
	if err != nil && !errors.Is(err, io.EOF) {
		return rtspReply{}, err
	}
	reply, err := parseStatus(line)
	if err != nil {
		return rtspReply{}, err
	}
	header, err := reader.ReadMIMEHeader()
	reply.header = http.Header(header)
	if err != nil {
		return reply, nil //nolint:nilerr // the status is enough
	}
	if length, err := strconv.ParseInt(reply.header.Get("Content-Length"), 10, 64); err == nil && length > 0 {
		_, _ = io.CopyN(io.Discard, reader.R, length) // the next response begins after the body
	}
	return reply, nil
}

func parseStatus(line string) (rtspReply, error) {
	version, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	number, reason, _ := strings.Cut(rest, " ")
	code, err := strconv.Atoi(number)
	if !strings.HasPrefix(version, "RTSP/") || err != nil || code < 100 || code > 599 {
		return rtspReply{}, errNotRTSP
	}
	printable := func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}
	return rtspReply{code: code, reason: strings.Map(printable, reason)}, nil
}
