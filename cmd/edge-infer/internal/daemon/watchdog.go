package daemon

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

const (
	// stillWindow is how long a loop may take over one round before the watchdog is left unfed.
	stillWindow = 10 * time.Second
	// firstWindow is the same for a frame loop whose engine has not answered yet: at first it loads kernels and chooses among them.
	firstWindow = 2 * time.Minute
	// slowRounds is how many requests to the engine a round may last at least: some networks are slow on some machines.
	slowRounds = 4
)

// watchdog reports whether the daemon itself makes progress, which a restart of the process could restore: its frame loops and its watch
// goroutine. An unavailable camera is no reason for a restart.
type watchdog struct {
	devices *device.Set
	pulse   *pipeline.Heartbeat
}

// margin is how much longer the loop that is furthest behind may be stuck; the watchdog is not fed when nothing is left of it.
func (w *watchdog) margin() time.Duration {
	margin := stillWindow - w.pulse.Stalled()
	for _, d := range w.devices.All {
		window := firstWindow
		if took := d.InferenceTime(); took > 0 {
			window = max(stillWindow, slowRounds*took)
		}
		margin = min(margin, window-d.Stuck())
	}
	return margin
}

func (w *watchdog) alive() bool { return w.margin() > 0 }
