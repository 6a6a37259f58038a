package capture

import (
	"log/slog"
	"regexp"
	"slices"
	"time"
)

const (
	// minLogInterval and maxLogInterval bound the growing intervals between log lines about the same outage.
	minLogInterval = 10 * time.Minute
	maxLogInterval = 24 * time.Hour
	// maxReasons bounds the distinct reasons logged per outage.
	maxReasons = 8
)

// healthLog logs the outages of a camera: each reason once, the recovery once, and a summary at growing intervals. It belongs to one
// goroutine.
type healthLog struct {
	logger *slog.Logger
	camera string

	reasons     []string  // logged in this outage, normalized
	since       time.Time // start of the outage
	failures    int       // in this outage
	offline     bool      // the last log line reported an outage
	recoveredAt time.Time // when images arrived again; zero while there are none
	throttle    logThrottle

	damagedLogged  uint64 // damaged images reported so far
	damageThrottle logThrottle
}

// failed logs a failed attempt; state is Lost or Waiting.
func (j *healthLog) failed(state State, err error, pause time.Duration) {
	j.expire()
	j.recoveredAt = time.Time{}
	if j.failures == 0 {
		j.since = time.Now()
	}
	j.failures++
	key := normalize(reason(err))
	known := slices.Contains(j.reasons, key)
	switch {
	case !known && len(j.reasons) < maxReasons:
		j.reasons = append(j.reasons, key)
		message := "camera unavailable"
		if state == Lost {
			message = "camera lost"
		}
		j.logger.Warn(message, "camera", j.camera, "error", err, "retry", pause.Round(time.Millisecond))
		j.throttle.start()
	case j.throttle.due():
		j.logger.Warn("camera still failing", "camera", j.camera, "error", err,
			"failures", j.failures, "for", time.Since(j.since).Round(time.Second))
	default:
		return
	}
	j.offline = true
}

// running is called repeatedly while images arrive.
func (j *healthLog) running() {
	if j.recoveredAt.IsZero() {
		j.recoveredAt = time.Now()
	}
	if j.offline {
		j.offline = false
		j.logger.Info("camera recovered", "camera", j.camera, "failures", j.failures, "after", time.Since(j.since).Round(time.Millisecond))
	}
	j.expire()
}

// expire forgets an outage once the camera has been stable.
func (j *healthLog) expire() {
	if !j.recoveredAt.IsZero() && time.Since(j.recoveredAt) >= stableAfter {
		j.reasons, j.failures = j.reasons[:0], 0
	}
}

// damaged logs new damaged images; images is their total and reason that of the last one.
func (j *healthLog) damaged(images uint64, reason string) {
	if images == j.damagedLogged || !j.damageThrottle.due() {
		return
	}
	j.logger.Warn("damaged images", "camera", j.camera, "count", images-j.damagedLogged, "reason", reason)
	j.damagedLogged = images
}

// logThrottle limits how often a lasting condition is logged.
type logThrottle struct {
	last  time.Time
	pause time.Duration
}

// start begins the intervals after a log line.
func (s *logThrottle) start() { s.last, s.pause = time.Now(), minLogInterval }

// due reports whether a line may be logged now; the interval then doubles.
func (s *logThrottle) due() bool {
	switch {
	case s.last.IsZero():
		s.start()
	case time.Since(s.last) >= s.pause:
		s.last, s.pause = time.Now(), min(2*s.pause, maxLogInterval)
	default:
		return false
	}
	return true
}

// variablePart matches what may differ between two reports of the same reason: addresses, ports, times, counts and sizes.
var variablePart = regexp.MustCompile(`\[[^\]\s]*\]|(\d+([.:]\d+)*(ms|µs|ns|s|m|h)?)+`)

// normalize returns a reason without its variable parts.
func normalize(reason string) string { return variablePart.ReplaceAllLiteralString(reason, "#") }
