package capture

import (
	"context"
	"strconv"
	"time"
)

const (
	// cancelGrace is how long a source may take to react to being cancelled before it is left behind.
	cancelGrace = 500 * time.Millisecond
	// maxSessions bounds the captures that hang inside OpenCV at one time; the camera then waits for one of them to come back.
	maxSessions = 8
)

// stallTimer adds up how long a session has shown no sign of life. Only time in which this process could have noticed one counts: not the time
// in which it was stopped itself, nor that in which the source waits for somebody else.
type stallTimer struct {
	progress  uint64 // the session's at the last look
	checked  int64  // CLOCK_MONOTONIC of that
	total time.Duration
}

func (q *stallTimer) update(s *session, interval time.Duration) time.Duration {
	now := Monotonic()
	passed := min(time.Duration(now-q.checked), 2*interval)
	q.checked = now
	if life := s.progress.Load(); life != q.progress || s.blocked.Load() {
		q.progress, q.total = life, 0
		return 0
	}
	q.total += passed
	return q.total
}

// connect runs one session and watches over it. It returns in bounded time after the context has ended or the source has stalled, with
// or without the goroutine that is inside OpenCV.
func (c *Camera) runSession(ctx context.Context, u URI, openTimeout time.Duration) (*session, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{camera: c, uri: u, ctx: inner, openTimeout: openTimeout, done: make(chan error, 1)}
	if !c.acquireSession(ctx, u) {
		return s, ctx.Err()
	}
	s.blocked.Store(u.Kind == Demo) // drawn by this process: if it is slow, so is everything here
	go func() {
		s.done <- s.run()
		<-c.sessions
	}()
	interval := min(max(c.StallTimeout/20, 5*time.Millisecond), 250*time.Millisecond)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	stall := stallTimer{checked: Monotonic()}
	for {
		select {
		case err := <-s.done:
			c.publishState()
			return s, err
		case <-ctx.Done():
			c.abandon(s)
			return s, ctx.Err()
		case <-tick.C:
			c.publishState()
			limit := c.StallTimeout
			if !s.hasImage() {
				limit = openTimeout
			}
			if stall.update(s, interval) < limit {
				continue
			}
			err := s.stallError(limit)
			c.setFailing(Stalled, err)
			cancel()
			c.abandon(s)
			return s, err
		}
	}
}

// acquireSession waits until no more than maxSessions captures hang; false when the context has ended.
func (c *Camera) acquireSession(ctx context.Context, u URI) bool {
	select {
	case c.sessions <- struct{}{}:
		return true
	default:
	}
	hung := u.NewError("open", ErrStalled, strconv.Itoa(maxSessions)+" captures hang inside OpenCV", "restart the program if this lasts", nil)
	c.setFailing(Hung, hung)
	select {
	case c.sessions <- struct{}{}:
		c.setFailing(Connecting, hung)
		return true
	case <-ctx.Done():
		return false
	}
}

// abandon waits a moment for a cancelled session and then does without it: nothing that it may still deliver counts any more.
func (c *Camera) abandon(s *session) {
	timer := time.NewTimer(cancelGrace)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		c.mu.Lock()
		s.abandoned = true
		c.stats.Abandoned++
		c.mu.Unlock()
	}
}
