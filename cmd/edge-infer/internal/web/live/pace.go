package live

import (
	"errors"
	"time"
)

// How far a viewer of video may be behind the camera.
const (
	maxLag = int64(2 * time.Second)
	// catchUp is how long it may be further behind, as at the start, which is at a key frame of some seconds ago.
	catchUp = int64(3 * time.Second)
	// maxSkips is how often it may go on with a later key frame within skipPeriod.
	maxSkips   = 3
	skipPeriod = int64(time.Minute)
)

var errTooSlow = errors.New("the connection is too slow for the camera's video")

// pace keeps a viewer of video close to the camera. Times are in nanoseconds of CLOCK_MONOTONIC.
type pace struct {
	seeking bool  // only a key frame can be sent next
	behind  int64 // since when the viewer is behind by more than maxLag; 0 if it is not
	skips   int   // since first
	first   int64
}

// judge reports whether a unit that was received at that time should be sent. Otherwise key frames are tried next. An error means that the
// viewer cannot keep up. A pace that seeks is asked about key frames only.
func (p *pace) judge(now, received int64) (send bool, err error) {
	if now-received <= maxLag {
		p.behind, p.seeking = 0, false
		return true, nil
	}
	if p.behind == 0 {
		p.behind = now
	}
	if now-p.behind < catchUp {
		p.seeking = false
		return true, nil
	}
	p.behind, p.seeking = 0, true
	if now-p.first > skipPeriod {
		p.skips, p.first = 0, now
	}
	p.skips++
	if p.skips > maxSkips {
		return false, errTooSlow
	}
	return false, nil
}
