package source

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
)

// mjpeg is an HTTP stream of JPEG images, as most network cameras and ESP32 boards offer it.
type mjpeg struct {
	uri     capture.URI
	options settings
	cancel  context.CancelCauseFunc
	ctx     context.Context
	body    io.ReadCloser
	client  *http.Client
	timer   *time.Timer // cancels if no image arrives in time

	parts multipart
	image encodedImage
	seq   uint64
	ring  *capture.Ring // nil without KeepUnits
}

var errReadTimeout = errors.New("no image in time")

// openHTTP reads multipart JPEG itself and leaves any other video to OpenCV.
func openHTTP(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: options.OpenTimeout}).DialContext,
		TLSHandshakeTimeout:    options.OpenTimeout,
		ResponseHeaderTimeout:  options.OpenTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		DisableKeepAlives:      true,
	}
	m := &mjpeg{uri: u, options: options, ctx: ctx, cancel: cancel}
	cookies, err := cookiejar.New(nil) // some cameras redirect to the stream with a session
	if err != nil {
		return nil, m.uri.NewError("open", capture.ErrUnavailable, "", "", err)
	}
	m.client = &http.Client{Transport: transport, CheckRedirect: checkRedirect, Jar: cookies}
	m.image.decoder.limit = sizeLimit(options.MaxPixels)
	m.ring = newImageRing(options.KeepUnits)
	m.timer = time.AfterFunc(options.OpenTimeout+options.ReadTimeout, func() { cancel(errReadTimeout) })
	var response *http.Response
	response, err = m.request()
	var file bool // finite
	if err == nil {
		file = options.EveryFrame && response.ContentLength > 0
		var stream bool
		stream, err = m.inspect(response)
		if stream {
			return m, nil
		}
	}
	_ = m.Close()
	if err != nil {
		return nil, err
	}
	api := gocv.VideoCaptureFFmpeg
	if options.backend == byGStreamer || !gocv.VideoRegistry.HasBackend(api) {
		api = gocv.VideoCaptureGstreamer
	}
	v, err := openVideo(u, u.Address, api, options)
	if err != nil {
		return nil, withHint(err, streamHint)
	}
	v.live = !file
	return v, nil
}

// checkRedirect bounds the redirects of a request.
func checkRedirect(_ *http.Request, before []*http.Request) error {
	if len(before) > capture.MaxRedirects {
		return capture.ErrRedirects
	}
	return nil
}

// request requests the stream, first without credentials and again with them if the server wants them. The response is 200 OK.
func (m *mjpeg) request() (*http.Response, error) {
	start, err := url.Parse(m.uri.Address)
	if err != nil {
		return nil, m.uri.NewError("open", capture.ErrURI, "not a valid URL", "", nil)
	}
	login, given := credentialsOf(start)
	bare := *start
	bare.User = nil
	response, err := m.get(&bare, "")
	if err != nil {
		return nil, err
	}
	target := response.Request.URL // after redirects
	asked := given && capture.SameHost(target, start)
	// Some servers answer 403 instead of 401.
	if asked && (response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden) {
		authorization := login.authorization(response.Header, target.RequestURI())
		if authorization == "" {
			return nil, m.uri.NewError("open", capture.ErrUnavailable, "the camera requires an unsupported authentication scheme", "", nil)
		}
		_ = response.Body.Close()
		response, err = m.get(target, authorization)
		if err != nil {
			return nil, err
		}
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, m.uri.Denied(asked, response.Status)
	}
	return nil, m.uri.NewError("open", capture.ErrUnavailable, "the server answers "+response.Status, "check the path", nil)
}

// get sends one request. The source closes the body.
func (m *mjpeg) get(target *url.URL, authorization string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(m.ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, m.uri.NewError("open", capture.ErrURI, "not a valid URL", "", nil)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := m.client.Do(request)
	switch {
	case errors.Is(err, capture.ErrRedirects):
		return nil, m.uri.NewError("open", capture.ErrUnavailable, "", "use the camera's final address", capture.ErrRedirects)
	case err != nil:
		return nil, m.uri.NewError("open", capture.ErrUnavailable, "", "check the address and that the camera is on", m.reason(err))
	}
	m.body = response.Body
	return response, nil
}

// inspect checks the content type; stream is false for a video, which OpenCV may be able to read.
func (m *mjpeg) inspect(response *http.Response) (stream bool, err error) {
	kind, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil { // then the first boundary of the stream is adopted
		kind, _, _ = strings.Cut(strings.ToLower(response.Header.Get("Content-Type")), ";")
	}
	switch {
	case strings.HasPrefix(kind, "multipart/"):
		data, err := m.decoded(response.Header.Get("Content-Encoding"))
		if err != nil {
			return false, err
		}
		m.parts = multipart{reader: bufio.NewReaderSize(data, 64<<10), boundary: []byte(strings.TrimPrefix(parameters["boundary"], "--"))}
		return true, nil
	case strings.HasPrefix(kind, "text/"), strings.HasPrefix(kind, "image/"), kind == "application/json":
		return false, m.uri.NewError("open", capture.ErrFormat, "the server sends "+kind+", which is not a video stream",
			"use the camera's MJPEG or video URL", nil)
	}
	return false, nil
}

// decoded returns the reader of the body's content. No request asks for an encoding, and some servers use one.
func (m *mjpeg) decoded(encoding string) (io.Reader, error) {
	var data io.Reader
	var err error
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return m.body, nil
	case "gzip", "x-gzip":
		data, err = gzip.NewReader(m.body)
	case "deflate":
		data, err = zlib.NewReader(m.body)
	default:
		return nil, m.uri.NewError("open", capture.ErrFormat, "the server sends the stream in the encoding "+strconv.Quote(encoding),
			"turn compression off in the server", nil)
	}
	if err != nil {
		return nil, m.uri.NewError("open", capture.ErrFormat, "the stream is not in the encoding "+encoding+" that the server announces", "",
			m.reason(err))
	}
	return data, nil
}

// reason returns an error of net/http without URL, addresses and ports, and distinguishes a timeout from a cancelled context.
func (m *mjpeg) reason(err error) error {
	if cause := context.Cause(m.ctx); cause != nil {
		return cause
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return capture.NetworkCause(err)
}

func (m *mjpeg) Live() bool   { return true }
func (m *mjpeg) FPS() float64 { return 0 }

// Next implements capture.Source.
func (m *mjpeg) Next(lend capture.Lender) (capture.Frame, error) {
	if m.ctx.Err() == nil {
		m.timer.Reset(m.options.ReadTimeout)
	}
	err := m.parts.next(&m.image)
	m.timer.Stop()
	switch {
	case errors.Is(context.Cause(m.ctx), errReadTimeout):
		return capture.Frame{}, m.uri.NewError("read", capture.ErrStalled, "no image for "+m.options.ReadTimeout.String(), "", nil)
	case errors.Is(err, io.EOF) && m.ctx.Err() == nil:
		return capture.Frame{}, m.uri.NewError("read", capture.ErrUnavailable, "the stream ended", "", nil)
	case errors.Is(err, errNoBoundary):
		return capture.Frame{}, m.uri.NewError("read", capture.ErrFormat, "the server sends images without the announced boundaries",
			"use another of the camera's addresses, or gst:souphttpsrc location=ADDRESS ! jpegparse ! jpegdec ! videoconvert ! appsink", nil)
	case errors.Is(err, errMalformed):
		const hint = "use another of the camera's addresses for MJPEG or video"
		return capture.Frame{}, m.uri.NewError("read", capture.ErrUnavailable, "", hint, err)
	case err != nil:
		return capture.Frame{}, m.uri.NewError("read", capture.ErrUnavailable, "", "", m.reason(err))
	}
	captured, now := capture.Monotonic(), time.Now()
	seq := m.seq
	m.seq++
	f, err := m.image.decode(lend)
	if err != nil {
		return capture.Frame{}, withURI(m.uri, err)
	}
	f.Seq, f.Captured, f.Time = seq, captured, now
	m.image.keep(m.ring, captured)
	return f, nil
}

// Ring implements capture.Packets.
func (m *mjpeg) Ring() *capture.Ring { return m.ring }

// Close implements capture.Source.
func (m *mjpeg) Close() error {
	m.timer.Stop()
	m.cancel(nil)
	if m.ring != nil {
		m.ring.End(io.EOF)
	}
	if m.body != nil {
		_ = m.body.Close()
	}
	m.client.CloseIdleConnections()
	m.image.decoder.closeMats()
	return nil
}
