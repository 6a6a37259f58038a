package mqtt

import (
	"sync"
	"time"
)

// logLimit lets one message a second through to the log, because any client may send commands.
type logLimit struct {
	mu         sync.Mutex
	last       time.Time
	unreported int
}

// Next reports whether to log a message now, and how many have been left out since the last one.
func (l *logLimit) Next(now time.Time) (unreported int, logNow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.last) < time.Second {
		l.unreported++
		return 0, false
	}
	unreported = l.unreported
	l.last, l.unreported = now, 0
	return unreported, true
}
