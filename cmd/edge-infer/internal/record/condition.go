package record

import (
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// steady is how long recording must work until it counts as working again: on a disk that is nearly full it fails every few seconds.
	steady = time.Minute
	// reminder is the time between two lines about a recording that keeps failing, if it fails for another reason.
	reminder = time.Hour
)

// condition is whether a camera is recorded, of one kind of its recordings, and what the log knows of that. One goroutine sets it.
type condition struct {
	status atomic.Pointer[CameraStatus]

	reason         string // that was logged last; empty if it works for all that the log says
	failed, logged int64  // the last failure and when it was logged, CLOCK_MONOTONIC
}

// set publishes a status at a time of CLOCK_MONOTONIC, and logs when recording begins to fail and when it has worked for a while again.
func (c *condition) set(now *CameraStatus, at int64, logger *slog.Logger, failing, again string) {
	c.status.Store(now)
	switch {
	case now.Reason != "":
		c.failed = at
		if c.reason == "" || c.reason != now.Reason && at-c.logged >= int64(reminder) {
			c.reason, c.logged = now.Reason, at
			logger.Warn(failing, "error", now.Reason)
		}
	case c.reason != "" && at-c.failed >= int64(steady):
		c.reason = ""
		logger.Info(again)
	}
}
