package capture

import (
	"log/slog"
	"regexp"
	"slices"
	"time"
)

const (
	// minLogInterval and maxLogInterval bound the growing pauses between log lines about a trouble that the log has named already.
	minLogInterval = 10 * time.Minute
	maxLogInterval  = 24 * time.Hour
	// maxReasons bounds how many reasons of one trouble are logged.
	maxReasons = 8
)

// healthLog writes a camera's troubles into the log: each reason once, the recovery once, and a summary now and then if it lasts. It belongs
// to one goroutine.
type healthLog struct {
	logger *slog.Logger
	camera string

	reasons  []string  // of this trouble, that the log names
	since    time.Time // the trouble
	failures int       // of this trouble
	offline     bool      // the log's last word is that the camera is away
	recoveredAt     time.Time // when images came again; zero while there are none
	throttle   logThrottle

	damagedLogged uint64 // damaged ones that the log tells of
	damageThrottle logThrottle
}

// failed hears of a try that is over: Lost or Waiting.
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
		message := "camera away"
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

// running hears, again and again, that images come.
func (j *healthLog) running() {
	if j.recoveredAt.IsZero() {
		j.recoveredAt = time.Now()
	}
	if j.offline {
		j.offline = false
		j.logger.Info("camera back", "camera", j.camera, "failures", j.failures, "after", time.Since(j.since).Round(time.Millisecond))
	}
	j.expire()
}

// expire ends a trouble that is over.
func (j *healthLog) expire() {
	if !j.recoveredAt.IsZero() && time.Since(j.recoveredAt) >= stableAfter {
		j.reasons, j.failures = j.reasons[:0], 0
	}
}

// damaged hears how many images were damaged until now, and what was wrong with the last one.
func (j *healthLog) damaged(images uint64, reason string) {
	if images == j.damagedLogged || !j.damageThrottle.due() {
		return
	}
	j.logger.Warn("damaged images", "camera", j.camera, "count", images-j.damagedLogged, "reason", reason)
	j.damagedLogged = images
}

// logThrottle says when to write the next line about something that lasts.
type logThrottle struct {
	last  time.Time
	pause time.Duration
}

// start starts the pauses after a line.
func (s *logThrottle) start() { s.last, s.pause = time.Now(), minLogInterval }

// due reports whether a line may be written now; the pause until the next one then doubles.
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

// variablePart is what may differ between two tellings of one reason: addresses, ports, times, counts and sizes.
var variablePart = regexp.MustCompile(`\[[^\]\s]*\]|(\d+([.:]\d+)*(ms|µs|ns|s|m|h)?)+`)

// normalize is a reason without what changes from try to try.
func normalize(reason string) string { return variablePart.ReplaceAllLiteralString(reason, "#") }
