package daemon

import (
	"context"
	"time"
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
	ready, shown := false, false
	var over overload
	since := time.Now()
	for {
		now := r.state(interval{})
		published = r.outputs.publishStatus(now, published)
		if !ready && now.FirstFrame > 0 {
			ready, shown = true, false // a status line is due
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
		if (terminal == nil || !terminal.Live()) && !due && shown {
			continue
		}
		shown = true
		now = r.state(interval{cameras: true, stages: due})
		if terminal != nil {
			terminal.Status(terminalState(now, time.Now()))
		}
		_ = r.service.Status("%s", statusLine(now))
		if due {
			since = time.Now()
			if client := r.outputs.client; client != nil {
				client.Stats(statsPayload(now))
			}
			over.check(r.logger, since, r.fleet.demands())
		}
	}
}
