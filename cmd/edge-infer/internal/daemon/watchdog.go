package daemon

import (
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

// stillWindow is how long a running camera may go without a frame through the loop before the watchdog is left unfed.
const stillWindow = 10 * time.Second

// watchdog says whether each camera's frames advance. It belongs to the goroutine that feeds systemd's.
type watchdog struct {
	cameras *cameras
	devices *devices
	seen    map[string]advance
}

// advance is how far a camera had come.
type advance struct {
	frames uint64 // that the frame loop had seen of the camera at the last look
	at     int64  // CLOCK_MONOTONIC of the last look that saw more
}

// alive says whether the watchdog may be fed: frames of every camera come through, except of those that are known to be away or to have ended.
func (w *watchdog) alive() bool {
	now := capture.Monotonic()
	alive, next := true, map[string]advance{}
	for _, totals := range w.devices.Totals() {
		camera := w.seen[totals.Camera]
		if frames := totals.Inferred + totals.Skipped; frames != camera.frames || camera.at == 0 {
			camera.frames, camera.at = frames, now
		}
		next[totals.Camera] = camera
		if now-camera.at < int64(stillWindow) {
			continue
		}
		switch w.cameras.Captured(totals.Camera).State {
		case capture.Running, capture.Hung: // a hung one is not tried again: too many captures hang already
			alive = false
		}
	}
	w.seen = next
	return alive
}
