package daemon

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

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
		p := programtest.StartWith(
			t,
			[]string{"EDGE_INFER_MQTT_SPOOL=/dev/null/spool"},
			"--camera",
			"demo?fps=15&width=640&height=360",
			"--mqtt",
			fmt.Sprintf("127.0.0.1:%d", test.port),
			"--name",
			"gate",
			"--json",
		)
		for range 60 { // parts appear and are gone
			_, more := p.Frame()
			require.True(t, more)
		}
		err := p.Stop(syscall.SIGTERM)
		if test.lost {
			require.ErrorContains(t, err, "exit status 1")
			require.Regexp(t, `close event spool: \d+ events are lost: mkdir /dev/null: not a directory`, p.Stderr.String())
		} else {
			require.NoError(t, err, p.Stderr)
		}
		require.Contains(t, p.Stderr.String(), "event spool cannot be used, events are kept in memory only")
	}
}
