package daemon

import (
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// spooling starts a program that has published events to a port, with a spool.
func spooling(t *testing.T, port int, directory string) *programtest.Program {
	p := programtest.StartWith(
		t,
		[]string{"EDGE_INFER_MQTT_SPOOL=" + directory, "EDGE_INFER_EVENTS_DIRECTORY=off"},
		"--camera",
		"demo?fps=15&width=640&height=360",
		"--mqtt",
		fmt.Sprintf("127.0.0.1:%d", port),
		"--name",
		"gate",
		"--json",
	)
	readFrames(t, p, 60) // parts appear and are gone
	return p
}

func readFrames(t *testing.T, p *programtest.Program, count int) {
	for range count {
		_, more := p.Frame()
		require.True(t, more)
	}
}

// requireLoss requires that the last line of the log reports as many lost events as the statistics count as dropped.
func requireLoss(t *testing.T, p *programtest.Program, dropped uint64, reason string) {
	lines := strings.Split(strings.TrimSpace(p.Stderr.String()), "\n")
	require.Contains(t, lines[len(lines)-1], fmt.Sprintf("close event spool: %d events are lost: %s", dropped, reason))
}

// TestTheExitCodeSaysWhetherEventsAreLost stops cleanly with a spool that cannot be used: with a broker that has taken every event, and
// without.
func TestTheExitCodeSaysWhetherEventsAreLost(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	for _, test := range []struct {
		port int
		lost bool
	}{{port, false}, {programtest.FreePort(t), true}} {
		p := spooling(t, test.port, "/dev/null/spool")
		require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
		_, stats := p.Rest()
		err := p.Wait()
		events := stats.MQTT.Events
		require.Zero(t, events.Queued, "nothing is kept")
		require.NotZero(t, events.Offered)
		if test.lost {
			require.ErrorContains(t, err, "exit status 1")
			require.Equal(t, events.Offered, events.Dropped)
			requireLoss(t, p, events.Dropped, "mkdir /dev/null: not a directory")
		} else {
			require.NoError(t, err, p.Stderr)
			require.Equal(t, events.Offered, events.Delivered)
		}
		require.Contains(t, p.Stderr.String(), "event spool cannot be used, events are kept in memory only")
	}
}

// TestEventsThatAFullDiskHasNoRoomForAreCounted stops without a broker after the disk has become full: what is on it waits for the next
// start, the rest is lost, and the statistics, the log and the exit code agree.
func TestEventsThatAFullDiskHasNoRoomForAreCounted(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	p := spooling(t, programtest.FreePort(t), directory)
	full := &unix.Rlimit{Max: unix.RLIM_INFINITY} // files cannot grow any more
	require.NoError(t, unix.Prlimit(p.Command.Process.Pid, unix.RLIMIT_FSIZE, full, nil))
	p.Logged("event spool cannot write, new events wait in memory")
	readFrames(t, p, 30)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	_, stats := p.Rest()
	require.ErrorContains(t, p.Wait(), "exit status 1")
	events := stats.MQTT.Events
	require.NotZero(t, events.Dropped)
	require.NotZero(t, events.Queued)
	require.Equal(t, events.Offered, events.Queued+events.Dropped)
	requireLoss(t, p, events.Dropped, "")

	next := &spool.Spool{Config: spool.Config{Directory: directory}, Logger: slog.New(slog.DiscardHandler), Notify: func() {}}
	require.NoError(t, next.Open())
	require.Equal(t, events.Queued, next.Account().Offered, "what the next start finds")
	require.NoError(t, next.Close())
}
