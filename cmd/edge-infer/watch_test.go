package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// systemd's side of the service: ready after the first frame, a status line, pings while frames advance, and word of the end.
func TestServiceTellsSystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer manager.Close()
	c := command(t, "--camera", "demo?width=320&height=240", "--mqtt", "off", "--json")
	c.Env = append(c.Env, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=2000000")
	require.NoError(t, c.Start())
	defer func() { _ = c.Process.Kill() }()
	next := func() string {
		buffer := make([]byte, 4096)
		require.NoError(t, manager.SetReadDeadline(time.Now().Add(patience)))
		n, err := manager.Read(buffer)
		require.NoError(t, err)
		return string(buffer[:n])
	}
	seen := map[string]bool{}
	for !seen["READY=1"] || !seen["WATCHDOG=1"] || !seen["STATUS"] {
		message := next()
		if len(message) > 7 && message[:7] == "STATUS=" {
			require.Contains(t, message, "fps")
			message = "STATUS"
		}
		seen[message] = true
	}
	require.NoError(t, c.Process.Signal(os.Interrupt))
	for next() != "STOPPING=1" {
		continue
	}
	require.NoError(t, c.Wait())
}
