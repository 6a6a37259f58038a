package source

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/pion/rtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
)

// answering is a server that reads one request and answers it.
func answering(t *testing.T, answer string) string {
	return serveTCP(t, func(connection net.Conn) {
		_, _ = textproto.NewReader(bufio.NewReader(connection)).ReadMIMEHeader() // all of it: what is not read resets the connection
		_, _ = connection.Write([]byte(answer))
	})
}

func TestDescribe(t *testing.T) {
	const wanted = "the camera requires a user name and password (write them as rtsp://USER:PASSWORD@HOST/PATH)"
	const circle = "more than 5 redirects (use the camera's final address)"
	for answer, want := range map[string]struct {
		kind error
		text string
	}{
		"RTSP/1.0 404 Not Found\r\nCSeq: 1\r\n\r\n": {capture.ErrUnavailable, "the server answers 404 Not Found (check the path)"},
		"RTSP/1.0 401 Unauthorized\r\n\r\n":         {capture.ErrDenied, wanted},
		"RTSP/1.0 403 Forbidden\r\n\r\n":            {capture.ErrDenied, wanted},
		"HTTP/1.1 400 Bad Request\r\n\r\n":          {capture.ErrUnavailable, "the answer is not RTSP (check that this is an RTSP server)"},
		"":                                          {capture.ErrUnavailable, "the answer is not RTSP (check that this is an RTSP server)"},
		"RTSP/1.0 \xff\xfe":                         {capture.ErrUnavailable, "the answer is not RTSP (check that this is an RTSP server)"},
		"RTSP/1.0 302 Found\r\nLocation: /\r\n\r\n": {capture.ErrUnavailable, circle},
		"RTSP/1.0 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n": {
			capture.ErrUnavailable,
			"the server redirects to an address that is not RTSP",
		},
		"RTSP/1.0 302 Found\r\n\r\n": {
			capture.ErrUnavailable,
			"the server redirects to an address that is not RTSP",
		},
	} {
		uri := "rtsp://" + answering(t, answer) + "/stream"
		_, err := Open(t.Context(), uri, capture.Options{OpenTimeout: 5 * time.Second})
		require.ErrorIs(t, err, want.kind)
		assert.EqualError(t, err, "open "+uri+": "+want.text)
	}
}

// TestCameraThatRefusesOurClient: after three attempts the decoder connects itself, and Connection reports why.
func TestCameraThatRefusesOurClient(t *testing.T) {
	server := newRTSPServer(t)
	var refused atomic.Int32
	address := serveTCP(t, func(client net.Conn) {
		request := make([]byte, 4096)
		n, err := client.Read(request)
		if err != nil {
			return
		}
		if bytes.Contains(request[:n], []byte("User-Agent: edge-infer")) {
			refused.Add(1)
			return
		}
		camera, err := net.Dial("tcp", "127.0.0.1:"+server.port)
		if err != nil {
			return
		}
		defer camera.Close()
		_, _ = camera.Write(request[:n])
		go func() {
			_, _ = io.Copy(camera, client)
			_ = camera.Close()
		}()
		_, _ = io.Copy(client, camera)
	})
	c := watch(t, &capture.Camera{Open: Open, URI: "rtsp://" + address + "/0", Retry: quick})
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(5)
	assert.Equal(t, int32(maxRefusals), refused.Load())
	assert.Equal(t, "RTSP client of the decoder, because the camera refused ours: the answer is not RTSP", c.Stats().Connection)
}

// describedAs is a description of a camera's only video.
func describedAs(codec, attributes string) string {
	return "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 " + codec + "/90000\r\n" + attributes
}

// forward sends what a camera sends to another client, until either is gone or stop is closed.
func forward(t *testing.T, from string, send func(packet *rtp.Packet) error, stop <-chan struct{}) {
	at, err := base.ParseURL(from)
	require.NoError(t, err)
	tcp := gortsplib.ProtocolTCP
	client := &gortsplib.Client{Scheme: at.Scheme, Host: at.Host, Protocol: &tcp}
	require.NoError(t, client.Start())
	defer client.Close()
	described, _, err := client.Describe(at)
	require.NoError(t, err)
	require.NoError(t, client.SetupAll(described.BaseURL, described.Medias))
	gone := make(chan struct{})
	var once sync.Once
	client.OnPacketRTPAny(func(_ *description.Media, _ format.Format, packet *rtp.Packet) {
		if send(packet) != nil {
			once.Do(func() { close(gone) })
		}
	})
	_, err = client.Play(nil)
	require.NoError(t, err)
	select {
	case <-gone:
	case <-stop:
	}
}

// TestFallback: a camera that FFmpeg reads and our client does not is opened by the decoder's after three attempts, and Connection says
// why.
func TestFallback(t *testing.T) {
	t.Parallel()
	server := newRTSPServer(t)
	var number atomic.Int32
	for name, test := range map[string]struct {
		camera *rtsptest.Raw
		why    string
	}{
		"description that the library refuses": {
			&rtsptest.Raw{SDP: describedAs("H264", "a=key-mgmt:sdes x\r\n")},
			"invalid SDP: media 1 is invalid: unsupported key-mgmt: sdes x",
		},
		"a new challenge for each request": {
			&rtsptest.Raw{
				SDP: describedAs("H264", ""),
				Headers: map[string]string{ // without a status of 401, the challenge means nothing
					"DESCRIBE": "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", stale=TRUE\r\nContent-Type: application/sdp\r\n",
					"SETUP": "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", stale=TRUE\r\nSession: 1\r\n" +
						"Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",
				},
				Status: func(method string, header textproto.MIMEHeader) string {
					ours := header.Get("User-Agent") == "edge-infer"
					switch {
					case method == "DESCRIBE" && header.Get("Authorization") == "", method == "SETUP" && ours, // never again
						method == "SETUP" && number.Add(1)%2 == 1: // FFmpeg's first one of a connection
						return "401 Unauthorized"
					}
					return "200 OK"
				},
			},
			"it wants the credentials again for each request",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.camera.Play = func(send func(packet *rtp.Packet) error) { forward(t, server.uri(), send, t.Context().Done()) }
			require.NoError(t, test.camera.Start())
			t.Cleanup(test.camera.Close)
			uri := strings.Replace(test.camera.URL(), "rtsp://", "rtsp://me:secret@", 1)
			c := watch(t, &capture.Camera{Open: Open, URI: uri, Retry: quick})
			c.waitForChange("that it runs", state(capture.Running))
			c.moves(5)
			assert.Equal(t, "RTSP client of the decoder, because the camera refused ours: "+test.why, c.Stats().Connection)
		})
	}
}
