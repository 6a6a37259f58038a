package daemon

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// stillWindow is how long a loop may take over one round before the watchdog is left unfed.
const stillWindow = 10 * time.Second

// watchdog reports whether the daemon itself makes progress, which a restart of the process could restore: its frame loops and its watch
// goroutine. An unavailable camera is no reason for a restart, and a network that does not answer is abandoned by its frame loop.
type watchdog struct {
	loops interface {
		Stuck() time.Duration // how long the one that is furthest behind has made no progress
	}
	pulse *pipeline.Heartbeat
}

// margin is how much longer the loop that is furthest behind may be stuck; the watchdog is not fed when nothing is left of it.
func (w *watchdog) margin() time.Duration {
	return stillWindow - max(w.pulse.Stalled(), w.loops.Stuck())
}

func (w *watchdog) alive() bool { return w.margin() > 0 }
