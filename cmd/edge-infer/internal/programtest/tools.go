package programtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// FreePort returns an unused port of the loopback address.
func FreePort(t testing.TB) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// Video writes a test video with this number of frames with ffmpeg.
func Video(t *testing.T, frames int) string {
	path := t.TempDir() + "/video.mp4"
	output, err := exec.Command(testtool.Program(t, "ffmpeg"), "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25",
		"-frames:v", fmt.Sprint(frames), "-pix_fmt", "yuv420p", path).CombinedOutput()
	require.NoError(t, err, strings.TrimSpace(string(output)))
	return path
}

// Visitor returns an HTTP client with cookies and without keep-alive.
func Visitor(t testing.TB) *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &http.Client{Jar: jar, Timeout: Patience, Transport: &http.Transport{DisableKeepAlives: true}}
}

// Get returns the status and body of a GET request.
func Get(t testing.TB, client *http.Client, address string) (int, []byte) {
	response, err := client.Get(address)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, text
}
