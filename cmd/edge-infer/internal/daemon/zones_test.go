package daemon

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestZonesDrawnOnThePageStay, where the configuration belongs to somebody else and only the state directory can be written to, as it is
// packaged.
func TestZonesDrawnOnThePageStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "edge-infer.yaml")
	text := "cameras: [{name: gate, uri: 'demo?width=160&height=120&fps=10'}]\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o444))
	start := func() (p *programtest.Program, page string) {
		p = programtest.StartWith(t, []string{"STATE_DIRECTORY=" + filepath.Join(dir, "state")}, "--config", file, "--mqtt", "off", "--web",
			"127.0.0.1:0")
		return p, p.PrintedAfter("web page at ")
	}
	p, page := start()
	visitor := programtest.Visitor(t)
	type answer struct {
		Editable bool
		Cameras  []struct {
			Analytics struct{ Zones []struct{ Name string } }
		}
	}
	status := func() (s answer) {
		code, text := programtest.Get(t, visitor, page+"api/status")
		require.Equal(t, http.StatusOK, code)
		require.NoError(t, json.Unmarshal(text, &s))
		return s
	}
	require.True(t, status().Editable)
	address := page + "api/cameras/gate/analytics"
	response, err := visitor.Get(address)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	const drawing = `{"zones":[{"name":"yard","points":[{"x":0,"y":0},{"x":1,"y":0},{"x":0,"y":1}]}]}`
	for _, want := range []int{http.StatusNoContent, http.StatusPreconditionFailed} { // the second save has not seen the first one
		request, err := http.NewRequest(http.MethodPut, address, strings.NewReader(drawing))
		require.NoError(t, err)
		request.Header.Set("If-Match", response.Header.Get("ETag"))
		saved, err := visitor.Do(request)
		require.NoError(t, err)
		require.NoError(t, saved.Body.Close())
		require.Equal(t, want, saved.StatusCode)
	}
	drawn := func() bool {
		s := status()
		return len(s.Cameras) == 1 && len(s.Cameras[0].Analytics.Zones) == 1 && s.Cameras[0].Analytics.Zones[0].Name == "yard"
	}
	require.Eventually(t, drawn, programtest.Patience, 50*time.Millisecond, "in force without a restart")
	require.NoError(t, p.Stop(syscall.SIGTERM))

	p, page = start()
	require.Eventually(t, drawn, programtest.Patience, 50*time.Millisecond, "and after one")
	require.NoError(t, p.Stop(syscall.SIGTERM))
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, string(after))
}
