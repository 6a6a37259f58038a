package daemon

// announceChanges announces the cameras again if sensors have appeared or disappeared, if labels were seen often enough, or if a
// network has been opened that was not at the start. While cameras or engine change it does nothing until the next call.
func (r *run) announceChanges() {
	if !r.control.changing.TryLock() {
		return
	}
	defer r.control.changing.Unlock()
	changed := r.outputs.AnnouncementDue(r.monitor.Latest())
	changed = r.opened.Swap(false) || changed
	if changed {
		r.announce()
	}
}

// announce logs an error of outputs.announce.
func (r *run) announce() {
	if err := r.outputs.Announce(r.state(interval{})); err != nil {
		r.logger.Error("announce", "error", err)
	}
}
