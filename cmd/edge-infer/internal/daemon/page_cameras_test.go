package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/onvif/onviftest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestCamerasAreChangedOnThePage of a whole program: a camera is found and added, its login is kept from everybody, detection of another is
// paused; both outlast the process, and the camera that was there is never opened again.
func TestCamerasAreChangedOnThePage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "edge-infer.yaml")
	require.NoError(t, os.WriteFile(file, []byte("model: {path: demo}\ncameras: [{name: gate, uri: 'demo?width=160&height=120&fps=10'}]\n"), 0o444))
	found := &onviftest.Camera{User: "viewer", Password: "p@ss", Digest: true}
	found.Start()
	defer found.Close()
	port := programtest.FreePort(t)
	start := func(flags ...string) (p *programtest.Program, page string) {
		flags = append([]string{"--config", file, "--web", "127.0.0.1:0"}, flags...)
		p = programtest.StartWith(t, []string{"STATE_DIRECTORY=" + filepath.Join(dir, "state")}, flags...)
		return p, p.PrintedAfter("web page at ")
	}
	visitor := programtest.Visitor(t)
	send := func(method, address, body string) string {
		t.Helper()
		request, err := http.NewRequest(method, address, strings.NewReader(body))
		require.NoError(t, err)
		response, err := visitor.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		var text strings.Builder
		require.NoError(t, response.Write(&text))
		return text.String()
	}
	type camera struct {
		Capture struct {
			Name, URI  string
			Reconnects int
		}
		Pipeline struct{ Inferred int }
		Settings struct{ Detect bool }
	}
	page := ""
	status := func() (cameras []camera) {
		code, text := programtest.Get(t, visitor, page+"api/status")
		require.Equal(t, http.StatusOK, code)
		require.NotContains(t, string(text), "p%40ss")
		var answer struct{ Cameras []camera }
		require.NoError(t, json.Unmarshal(text, &answer))
		return answer.Cameras
	}
	p, address := start("--mqtt", "off")
	page = address
	const login = `"user":"viewer","password":"p@ss"}`
	require.Contains(t, send("POST", page+"api/cameras/search", `{"addresses":["`+found.Host()+`"],`+login), "rtsp://")
	require.Contains(t, send("POST", page+"api/cameras", `{"name":"yard","uri":"rtsp://127.0.0.1:9/a",`+login), "204")
	require.Contains(t, send("POST", page+"api/cameras", `{"name":"files","uri":"/etc"}`), "configuration file")
	require.Eventually(t, func() bool { return len(status()) == 2 }, programtest.Patience, 20*time.Millisecond)
	require.NotContains(t, status()[1].Capture.URI, "viewer:")
	require.Contains(t, send("PUT", page+"api/cameras/gate/settings/detect", `{"value":"OFF"}`), "204")
	require.False(t, status()[0].Settings.Detect, "the next status has it")
	require.Zero(t, status()[0].Capture.Reconnects)
	saved, err := os.ReadFile(filepath.Join(dir, "state", "cameras.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(saved), "rtsp://viewer:p%40ss@127.0.0.1:9/a")
	require.NotContains(t, p.Stderr.String(), "p%40ss")
	require.NoError(t, p.Stop(syscall.SIGTERM))

	// With a broker, the same values are published, and MQTT and the page change each other's.
	p, page = start("--mqtt-listen", fmt.Sprintf("127.0.0.1:%d", port))
	require.Len(t, status(), 2)
	require.False(t, status()[0].Settings.Detect)
	programtest.Until(t, programtest.Subscribe(t, port, "edge-infer/+/gate/detect/state"), "OFF")
	require.Contains(t, send("PUT", page+"api/cameras/gate/settings/detect", `{"value":""}`), "204")
	programtest.Until(t, programtest.Subscribe(t, port, "edge-infer/+/gate/detect/state"), "ON")
	require.True(t, status()[0].Settings.Detect)
	require.Contains(t, send("DELETE", page+"api/cameras/yard", ""), "204")
	require.Eventually(t, func() bool { return len(status()) == 1 }, programtest.Patience, 20*time.Millisecond)
	require.Contains(t, send("DELETE", page+"api/cameras/gate", ""), "remove it from the configuration file")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
