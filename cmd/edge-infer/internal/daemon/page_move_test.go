package daemon

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestThePageMovesWhileFramesGoOn: another address, or none, restarts nothing, and an address in use changes nothing.
func TestThePageMovesWhileFramesGoOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	addresses := []string{fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))}
	listen := func(at string) {
		text := "mqtt: {url: 'off'}\ncameras: [{name: belt, uri: 'demo?width=160&height=120&fps=10'}]\nweb: {listen: '" + at + "'}\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	listen(addresses[0])
	p := programtest.Start(t, "--config", path)
	p.PrintedAfter("web page at ")
	p.Discard()
	reload := func() { require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP)) }
	open := func(at string) bool {
		connection, err := net.Dial("tcp", at)
		if err == nil {
			connection.Close()
		}
		return err == nil
	}
	eventually := func(condition func() bool) {
		t.Helper()
		require.Eventually(t, condition, programtest.Patience, 50*time.Millisecond, "%s", p.Stderr)
	}
	var status struct {
		Cameras   []struct{ Pipeline struct{ Inferred uint64 } }
		Operation struct{ Restarts int }
		Reload    struct{ Error string }
	}
	read := func(at string) uint64 {
		_, text := programtest.Get(t, programtest.Visitor(t), "http://"+at+"/api/status")
		require.NoError(t, json.Unmarshal(text, &status), string(text))
		require.Zero(t, status.Operation.Restarts)
		return status.Cameras[0].Pipeline.Inferred
	}
	eventually(func() bool { return read(addresses[0]) > 0 })
	before := read(addresses[0])

	listen(addresses[1])
	reload()
	eventually(func() bool { return open(addresses[1]) })
	require.False(t, open(addresses[0]))
	require.GreaterOrEqual(t, read(addresses[1]), before)

	taken, err := net.Listen("tcp", addresses[0])
	require.NoError(t, err)
	listen(addresses[0])
	reload()
	eventually(func() bool {
		read(addresses[1])
		return status.Reload.Error != ""
	})
	require.Contains(t, status.Reload.Error, "address already in use")
	require.NoError(t, taken.Close())

	listen("off")
	reload()
	eventually(func() bool { return !open(addresses[1]) })
	listen(addresses[0])
	reload()
	eventually(func() bool { return open(addresses[0]) })
	require.GreaterOrEqual(t, read(addresses[0]), before)
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
