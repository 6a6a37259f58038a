package capture

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			_, _ = bufio.NewReader(connection).ReadString('\n')
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
	for answer, want := range map[string]string{
		"RTSP/1.0 404 Not Found\r\nCSeq: 1\r\n\r\n": "the server answers 404 Not Found (check the path)",
		"RTSP/1.0 401 Unauthorized\r\n\r\n":         "the server wants a user name and password (write them as rtsp://USER:PASSWORD@HOST/PATH)",
		"HTTP/1.1 400 Bad Request\r\n\r\n":          "the answer is not RTSP (check that this is an RTSP server)",
		"":                                          "the answer is not RTSP (check that this is an RTSP server)",
		"RTSP/1.0 \xff\xfe":                         "the answer is not RTSP (check that this is an RTSP server)",
	} {
		uri := "rtsp://" + answering(t, answer) + "/stream"
		_, err := Open(t.Context(), uri, Options{OpenTimeout: 5 * time.Second})
		require.ErrorIs(t, err, ErrUnavailable)
		// A connection closed with unread bytes is reset, which then is the reason.
		if err.Error() != "open "+uri+": "+want {
			assert.Contains(t, err.Error(), "connection reset by peer")
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add("RTSP/1.0 200 OK\r\n")
	f.Fuzz(func(t *testing.T, line string) {
		status, err := parseStatus(line)
		if err == nil {
			assert.True(t, status.code >= 100 && status.code < 600)
			assert.NotContains(t, status.reason, "\n")
		}
	})
}
