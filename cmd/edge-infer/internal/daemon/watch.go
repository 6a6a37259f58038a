package daemon

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

const (
	statusPause = time.Second      // between two updates of the status
	statsPause  = 10 * time.Second // between two stats messages, and reports of states where no terminal is
)

// watch shows and publishes how the run is until ctx ends.
func (r *run) watch(ctx context.Context) {
	r.service.Alive = r.watchdog.alive
	go func() {
		if err := r.service.Watch(ctx); err != nil {
			r.logger.Warn("watchdog", "error", err)
		}
	}()
	ticker := time.NewTicker(statusPause)
	defer ticker.Stop()
	var published string
	var lines []pipeline.CameraStats
	ready := false
	var over overload
	since := time.Now()
	for {
		published = r.outputs.publishStatus(published)
		if !ready && r.fleet.devices.FirstFrame() > 0 {
			ready, lines = true, nil // a status line is due
		}
		r.pulse.Rest()
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			r.pulse.Beat()
			continue
		case <-ticker.C:
			r.pulse.Beat()
		}
		r.slowDown()
		r.announceChanges()
		r.fleet.rememberImages()
		terminal := r.outputs.terminal
		due := time.Since(since) >= statsPause
		if (terminal == nil || !terminal.Live()) && !due && lines != nil {
			continue
		}
		lines = r.outputs.inOrder(r.fleet.devices.Stats())
		text := r.outputs.statusLine(lines)
		if terminal != nil {
			terminal.Status(r.outputs.state(lines, text))
		}
		_ = r.service.Status("%s", text)
		if due {
			since = time.Now()
			r.outputs.publishStats(lines)
			over.check(r.logger, since, r.fleet.demands())
		}
	}
}
