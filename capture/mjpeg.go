package capture

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gocv.io/x/gocv"
)

// mjpeg is an HTTP stream of JPEG pictures, as most network cameras and ESP32 boards offer it.
type mjpeg struct {
	uri     URI
	options Options
	cancel  context.CancelCauseFunc
	ctx     context.Context
	body    io.ReadCloser
	client  *http.Client
	timer   *time.Timer // cancels when no picture comes in time

	parts   multipart
	picture picture
	seq     uint64
}

var errReadTimeout = errors.New("no picture in time")

// openHTTP reads multipart JPEG itself and leaves any other video to OpenCV.
func openHTTP(ctx context.Context, u URI, options Options) (Source, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: options.OpenTimeout}).DialContext,
		TLSHandshakeTimeout:   options.OpenTimeout,
		ResponseHeaderTimeout: options.OpenTimeout,
		DisableCompression:    true,
		DisableKeepAlives:     true,
	}
	m := &mjpeg{uri: u, options: options, ctx: ctx, cancel: cancel, client: &http.Client{Transport: transport}}
	m.timer = time.AfterFunc(options.OpenTimeout+options.ReadTimeout, func() { cancel(errReadTimeout) })
	fallback, err := m.open()
	if err == nil && !fallback {
		return m, nil
	}
	_ = m.Close()
	if err != nil {
		return nil, err
	}
	api := gocv.VideoCaptureFFmpeg
	if options.Decoder == GStreamer || !gocv.VideoRegistry.HasBackend(api) {
		api = gocv.VideoCaptureGstreamer
	}
	v, err := openVideo(u, u.Address, api, options)
	if err != nil {
		return nil, withHint(err, streamHint)
	}
	return v, nil
}

// open asks for the stream; fallback means that it is a video, which OpenCV may be able to read.
func (m *mjpeg) open() (fallback bool, err error) {
	request, err := http.NewRequestWithContext(m.ctx, http.MethodGet, m.uri.Address, nil)
	if err != nil {
		return false, m.uri.fail("open", ErrURI, "not a valid URL", "", nil)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return false, m.uri.fail("open", ErrUnavailable, "", "check the address and that the camera is on", m.reason(err))
	}
	m.body = response.Body
	kind, parameters, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode == http.StatusUnauthorized && request.URL.User != nil &&
		strings.HasPrefix(strings.ToLower(response.Header.Get("WWW-Authenticate")), "digest"):
		return true, nil
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return false, m.uri.fail("open", ErrUnavailable, "the server answers "+response.Status, "put user name and password into the URL, or set right those that are in it", nil)
	case response.StatusCode != http.StatusOK:
		return false, m.uri.fail("open", ErrUnavailable, "the server answers "+response.Status, "check the path", nil)
	case strings.HasPrefix(kind, "multipart/"):
		if parameters["boundary"] == "" {
			return false, m.uri.fail("open", ErrFormat, "multipart stream without a boundary", "", nil)
		}
		m.parts = multipart{reader: bufio.NewReaderSize(m.body, 64<<10), boundary: []byte(strings.TrimPrefix(parameters["boundary"], "--"))}
		return false, nil
	case strings.HasPrefix(kind, "text/"), strings.HasPrefix(kind, "image/"), kind == "application/json":
		return false, m.uri.fail("open", ErrFormat, "the server sends "+kind+", which is no stream", "use the camera's MJPEG or video URL", nil)
	}
	return true, nil
}

// reason leaves the URL out of an error of net/http and tells a time-out from a cancelled context.
func (m *mjpeg) reason(err error) error {
	if cause := context.Cause(m.ctx); cause != nil {
		return cause
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func (m *mjpeg) Live() bool   { return true }
func (m *mjpeg) FPS() float64 { return 0 }

// Next implements Source.
func (m *mjpeg) Next(lend Lender) (Frame, error) {
	if m.ctx.Err() == nil {
		m.timer.Reset(m.options.ReadTimeout)
	}
	err := m.parts.next(&m.picture)
	m.timer.Stop()
	switch {
	case errors.Is(err, io.EOF) && m.ctx.Err() == nil:
		return Frame{}, m.uri.fail("read", ErrUnavailable, "the stream ended", "", nil)
	case err != nil:
		return Frame{}, m.uri.fail("read", ErrUnavailable, "", "", m.reason(err))
	}
	captured, now := Monotonic(), time.Now()
	f, err := m.picture.decode(lend)
	seq := m.seq
	m.seq++
	switch {
	case errors.Is(err, errNoPicture):
		return Frame{}, m.uri.fail("read", ErrPicture, "not a picture that OpenCV can read", "", nil)
	case err != nil:
		return Frame{}, m.uri.named(err)
	}
	f.Seq, f.Captured, f.Time = seq, captured, now
	return f, nil
}

// Close implements Source.
func (m *mjpeg) Close() error {
	m.timer.Stop()
	m.cancel(nil)
	if m.body != nil {
		_ = m.body.Close()
	}
	m.client.CloseIdleConnections()
	m.picture.decoder.forget()
	return nil
}
