package daemon

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/fleet"

// announceChanges announces the cameras again if sensors have appeared or disappeared, if labels were seen often enough, or if a
// network has been opened that was not at the start. While cameras or engine change it does nothing until the next call.
func (r *run) announceChanges() {
	r.control.Between(func() {
		due := r.outputs.AnnouncementDue(r.monitor.Latest())
		due = r.opened.Swap(false) || due
		if due {
			r.announce()
		}
	})
}

// announce logs an error of outputs.Announce.
func (r *run) announce() {
	if err := r.outputs.Announce(r.state(fleet.Interval{})); err != nil {
		r.logger.Error("announce", "error", err)
	}
}
