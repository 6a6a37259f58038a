package daemon

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/fleet"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/outputs"
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
	ready, shown := false, false
	since := time.Now()
	for {
		now := r.state(fleet.Interval{})
		r.outputs.PublishStatus(now)
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
		r.fleet.RememberImages()
		due := time.Since(since) >= statsPause
		if !r.outputs.Live() && !due && shown {
			continue
		}
		shown = true
		now = r.state(fleet.Interval{Cameras: true, Stages: due})
		r.outputs.Show(now)
		_ = r.service.Status("%s", outputs.StatusLine(now))
		if due {
			since = time.Now()
			r.outputs.PublishStats(now)
			r.fleet.CheckLoad(since)
		}
	}
}
