package capture

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gocv.io/x/gocv"
)

const streamHint = "check address, user name and password, and that the stream plays elsewhere"

// openRTSP leaves the stream to FFmpeg, which bounds its own waiting, or to GStreamer where that has JetPack's hardware decoder.
func openRTSP(ctx context.Context, u URI, options Options) (Source, error) {
	if err := describe(ctx, u, options.OpenTimeout); err != nil {
		return nil, err
	}
	jetson := FindPlugin(pluginDecoder) != "" && gocv.VideoRegistry.HasBackend(gocv.VideoCaptureGstreamer)
	var v *video
	var err error
	if options.Decoder == GStreamer || options.Decoder == "" && (jetson || !gocv.VideoRegistry.HasBackend(gocv.VideoCaptureFFmpeg)) {
		v, err = openGStreamer(u, rtspPipeline(u.Address, options.Every, jetson), options)
	} else {
		v, err = openVideo(u, u.Address, gocv.VideoCaptureFFmpeg, options)
	}
	if err != nil {
		return nil, withHint(err, streamHint)
	}
	return v, nil
}

// describe asks the server for the stream before a decoder does. It tells apart what OpenCV calls a failure to open, and it spares GStreamer a
// server that is away or silent: OpenCV 4.6 then waits for ever in about one open of a hundred.
func describe(ctx context.Context, u URI, timeout time.Duration) error {
	address, err := url.Parse(u.Address)
	if err != nil {
		return u.fail("open", ErrURI, "not a valid URL", "", nil)
	}
	port := address.Port()
	if port == "" {
		port = map[string]string{"rtsp": "554", "rtsps": "322"}[address.Scheme]
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address.Hostname(), port))
	if err != nil {
		return u.fail("open", ErrUnavailable, "", "check the address and that the camera is on", err)
	}
	defer connection.Close()
	if address.Scheme == "rtsps" {
		return nil // the handshake is the decoder's
	}
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	authorized := address.User != nil
	address.User = nil
	status, err := ask(connection, address.String())
	switch {
	case err != nil && ctx.Err() != nil:
		return u.fail("open", ErrUnavailable, "the server does not answer", "check that the camera is on", ctx.Err())
	case err != nil:
		return u.fail("open", ErrUnavailable, "", "check that this is an RTSP server", err)
	case status.code < 400, status.code == 401 && authorized:
		return nil
	case status.code == 401:
		return u.fail("open", ErrUnavailable, "the server wants a user name and password", "write them as rtsp://USER:PASSWORD@HOST/PATH", nil)
	}
	return u.fail("open", ErrUnavailable, "the server answers "+strconv.Itoa(status.code)+" "+status.reason, "check the path", nil)
}

// rtspStatus is the first line of a server's answer.
type rtspStatus struct {
	code   int
	reason string
}

var errNotRTSP = errors.New("the answer is not RTSP")

// ask sends DESCRIBE and reads the status of the answer.
func ask(connection io.ReadWriter, address string) (rtspStatus, error) {
	if _, err := io.WriteString(connection, "DESCRIBE "+address+" RTSP/1.0\r\nCSeq: 1\r\nAccept: application/sdp\r\nUser-Agent: edge-infer\r\n\r\n"); err != nil {
		return rtspStatus{}, err
	}
	line, err := bufio.NewReader(io.LimitReader(connection, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return rtspStatus{}, err
	}
	return parseStatus(line)
}

func parseStatus(line string) (rtspStatus, error) {
	version, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	number, reason, _ := strings.Cut(rest, " ")
	code, err := strconv.Atoi(number)
	if !strings.HasPrefix(version, "RTSP/") || err != nil || code < 100 || code > 599 {
		return rtspStatus{}, errNotRTSP
	}
	printable := func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}
	return rtspStatus{code, strings.Map(printable, reason)}, nil
}
