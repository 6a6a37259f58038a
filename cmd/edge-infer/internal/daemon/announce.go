package daemon

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/fleet"

// announceChanges announces the cameras again if sensors have appeared or disappeared, if labels were seen often enough, or if a
// network has been opened that was not at the start. While cameras or engine change it does nothing until the next call.
func (r *run) announceChanges() {
	r.control.Between(func() {
		if err := r.outputs.AnnounceChanges(r.state(fleet.Interval{})); err != nil {
			r.logger.Error("announce", "error", err)
		}
	})
}
