package source

import (
	"bufio"
	"net"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

// answering is a server that reads one request and answers it.
func answering(t *testing.T, answer string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = textproto.NewReader(bufio.NewReader(connection)).ReadMIMEHeader() // all of it: what is not read resets the connection
			_, _ = connection.Write([]byte(answer))
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
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

func FuzzRTSPReply(f *testing.F) {
	f.Add("RTSP/1.0 200 OK\r\n")
	f.Add("RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"b\", qop=\"auth\"\r\nContent-Length: 3\r\n\r\nabc")
	f.Add("RTSP/1.0 302 Found\r\nLocation: rtsp://b/\r\n\r\n")
	from, login := &url.URL{Scheme: "rtsp", Host: "a"}, credentials{"user", "hunter2"}
	f.Fuzz(func(t *testing.T, text string) {
		reply, err := readReply(textproto.NewReader(bufio.NewReader(strings.NewReader(text))))
		if err != nil {
			return
		}
		if reply.code < 100 || reply.code > 599 || strings.ContainsAny(reply.status(), "\r\n") {
			t.Fatalf("%+v", reply)
		}
		if to, err := redirected(from, reply.header.Get("Location")); err == nil && to.Scheme != "rtsp" && to.Scheme != "rtsps" {
			t.Fatal(to)
		}
		answer := login.authorization(reply.header, "DESCRIBE", "rtsp://a/")
		if strings.ContainsAny(answer, "\r\n") || strings.Contains(answer, "hunter2") {
			t.Fatal(answer)
		}
	})
}
