package systemd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// manager listens as the service manager does.
func manager(t *testing.T) *net.UnixConn {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return conn
}

func receive(t *testing.T, conn *net.UnixConn, limit time.Duration) string {
	buffer := make([]byte, 4096)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(limit)))
	n, err := conn.Read(buffer)
	if err != nil {
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		return ""
	}
	return string(buffer[:n])
}

func TestMessages(t *testing.T) {
	conn := manager(t)
	var s Service
	require.True(t, s.Managed())
	require.NoError(t, s.Ready())
	require.NoError(t, s.Status("%d fps", 30))
	require.NoError(t, s.Reloading(5_000_000))
	require.NoError(t, s.Stopping())
	for _, want := range []string{"", "READY=1", "STATUS=30 fps", "RELOADING=1\nMONOTONIC_USEC=5000", "STOPPING=1"} {
		require.Equal(t, want, receive(t, conn, 5*time.Second))
	}
}

func TestWithoutAManagerNothingHappens(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	var s Service
	require.False(t, s.Managed())
	require.NoError(t, s.Ready())
	require.NoError(t, s.Watch(t.Context()), "no watchdog in the unit")
}

func TestAManagerThatIsGoneIsAnError(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	var s Service
	require.ErrorContains(t, s.Ready(), "notify systemd: ")
}

func TestThePingStopsWithTheWork(t *testing.T) {
	conn := manager(t)
	t.Setenv("WATCHDOG_USEC", "40000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	var alive atomic.Bool
	alive.Store(true)
	s := Service{Alive: alive.Load}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Watch(ctx) }()
	require.Equal(t, "WATCHDOG=1", receive(t, conn, 5*time.Second))
	require.Equal(t, "WATCHDOG=1", receive(t, conn, 5*time.Second))
	alive.Store(false)
	for receive(t, conn, 200*time.Millisecond) != "" {
		continue
	}
	cancel()
	require.NoError(t, <-done)
}
