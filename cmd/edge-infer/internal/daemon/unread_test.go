package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestAnUnreadPipeHoldsUpNoEnd: the program ends although nobody reads what it prints, and says that lines were lost.
func TestAnUnreadPipeHoldsUpNoEnd(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	room, err := unix.FcntlInt(write.Fd(), unix.F_GETPIPE_SZ, 0)
	require.NoError(t, err)
	_, err = write.Write(make([]byte, room))
	require.NoError(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	c := programtest.Command(t, "--camera", "demo?width=320&height=240&fps=30", "--mqtt", "off", "--json", "--web", address)
	stderr := &programtest.Buffer{}
	c.Stdout, c.Stderr = write, stderr
	require.NoError(t, c.Start())
	require.NoError(t, write.Close())
	require.Eventually(t, func() bool { // frames come through all the same
		response, err := programtest.Visitor(t).Get("http://" + address + "/api/status")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var status struct {
			Cameras []struct{ Pipeline struct{ Inferred int } }
		}
		return response.StatusCode == http.StatusOK && json.NewDecoder(response.Body).Decode(&status) == nil &&
			status.Cameras[0].Pipeline.Inferred > 5
	}, programtest.Patience, 50*time.Millisecond, "%s", stderr)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(programtest.Patience):
		_ = c.Process.Kill()
		require.Fail(t, "it does not end")
	}
	require.ErrorContains(t, err, "exit status 1")
	require.Equal(t, 1, strings.Count(stderr.String(), "standard output is not being read"), stderr.String())
}
