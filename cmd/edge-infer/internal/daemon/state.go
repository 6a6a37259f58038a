package daemon

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/fleet"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
)

// state builds the State of the run. The networks must be open.
func (r *run) state(since fleet.Interval) *state.State {
	now := r.outputs.State()
	r.fleet.Report(now, since)
	r.report(now)
	return now
}

// final builds the State at the end of the run.
func (r *run) final() *state.State {
	now := r.outputs.State()
	r.fleet.ReportEnd(now)
	r.report(now)
	return now
}

// report adds what neither outputs nor fleet know.
func (r *run) report(now *state.State) {
	now.Sensors = r.monitor.Latest()
	now.Slowdown = int(r.throttle.factor.Load())
	now.Reload = r.control.Reloaded()
	now.Restarts = restarts()
	now.Update = r.updater.Status()
	now.Watchdog = r.watchdog.margin()
	for i := range now.Cameras {
		now.Cameras[i].Seen = r.outputs.Seen(now.Cameras[i].Site.Name)
	}
}
