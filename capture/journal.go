package capture

import (
	"log/slog"
	"regexp"
	"slices"
	"time"
)

const (
	// firstSummary and lastSummary bound the growing pauses between log lines about a trouble that the log has named already.
	firstSummary = 10 * time.Minute
	lastSummary  = 24 * time.Hour
	// maxReasons bounds how many reasons of one trouble are logged.
	maxReasons = 8
)

// journal writes a camera's troubles into the log: each reason once, the recovery once, and a summary now and then if it lasts. It belongs
// to one goroutine.
type journal struct {
	logger *slog.Logger
	camera string

	reasons  []string  // of this trouble, that the log names
	began    time.Time // the trouble
	failures int       // of this trouble
	down     bool      // the log's last word is that the camera is away
	back     time.Time // when images came again; zero while there are none
	losses   summary

	images uint64 // damaged ones that the log tells of
	damage summary
}

// failed hears of a try that is over: Lost or Waiting.
func (j *journal) failed(state State, err error, pause time.Duration) {
	j.forget()
	j.back = time.Time{}
	if j.failures == 0 {
		j.began = time.Now()
	}
	j.failures++
	key := lasting(reason(err))
	known := slices.Contains(j.reasons, key)
	switch {
	case !known && len(j.reasons) < maxReasons:
		j.reasons = append(j.reasons, key)
		message := "camera away"
		if state == Lost {
			message = "camera lost"
		}
		j.logger.Warn(message, "camera", j.camera, "error", err, "retry", pause.Round(time.Millisecond))
		j.losses.begin()
	case j.losses.due():
		j.logger.Warn("camera still failing", "camera", j.camera, "error", err,
			"failures", j.failures, "for", time.Since(j.began).Round(time.Second))
	default:
		return
	}
	j.down = true
}

// running hears, again and again, that images come.
func (j *journal) running() {
	if j.back.IsZero() {
		j.back = time.Now()
	}
	if j.down {
		j.down = false
		j.logger.Info("camera back", "camera", j.camera, "failures", j.failures, "after", time.Since(j.began).Round(time.Millisecond))
	}
	j.forget()
}

// forget ends a trouble that is over.
func (j *journal) forget() {
	if !j.back.IsZero() && time.Since(j.back) >= settled {
		j.reasons, j.failures = j.reasons[:0], 0
	}
}

// damaged hears how many images were damaged until now, and what was wrong with the last one.
func (j *journal) damaged(images uint64, reason string) {
	if images == j.images || !j.damage.due() {
		return
	}
	j.logger.Warn("damaged images", "camera", j.camera, "count", images-j.images, "reason", reason)
	j.images = images
}

// summary says when to write the next line about something that lasts.
type summary struct {
	last  time.Time
	pause time.Duration
}

// begin starts the pauses after a line.
func (s *summary) begin() { s.last, s.pause = time.Now(), firstSummary }

// due reports whether a line may be written now; the pause until the next one then doubles.
func (s *summary) due() bool {
	switch {
	case s.last.IsZero():
		s.begin()
	case time.Since(s.last) >= s.pause:
		s.last, s.pause = time.Now(), min(2*s.pause, lastSummary)
	default:
		return false
	}
	return true
}

// changing is what may differ between two tellings of one reason: addresses, ports, times, counts and sizes.
var changing = regexp.MustCompile(`\[[^\]\s]*\]|(\d+([.:]\d+)*(ms|µs|ns|s|m|h)?)+`)

// lasting is a reason without what changes from try to try.
func lasting(reason string) string { return changing.ReplaceAllLiteralString(reason, "#") }
