package capture

import (
	"context"
	"strconv"
	"time"
)

const (
	// cancelGrace is how long a source may take to react to cancellation before it is abandoned.
	cancelGrace = 500 * time.Millisecond
	// maxSessions bounds the captures that hang in a decoder or driver at the same time; the camera then waits for one to return.
	maxSessions = 8
)

// stallTimer measures how long a session has made no progress. Time during which this process was suspended, or the source waited for its
// consumer, does not count.
type stallTimer struct {
	progress uint64 // of the session at the last check
	checked  int64  // CLOCK_MONOTONIC of the last check
	total    time.Duration
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

// runSession runs and supervises one session. It returns in bounded time after the context has ended or the source has stalled, even if its
// goroutine hangs in a decoder or driver.
func (c *Camera) runSession(ctx context.Context, u URI, openTimeout time.Duration) (*session, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{camera: c, uri: u, ctx: inner, openTimeout: openTimeout, done: make(chan error, 1)}
	if !c.acquireSession(ctx, u) {
		return s, ctx.Err()
	}
	s.blocked.Store(u.Kind == Demo) // rendered by this process: never stalled
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

// acquireSession waits until fewer than maxSessions captures hang; false when the context has ended.
func (c *Camera) acquireSession(ctx context.Context, u URI) bool {
	select {
	case c.sessions <- struct{}{}:
		return true
	default:
	}
	message := strconv.Itoa(maxSessions) + " captures hang in a decoder or driver"
	hung := u.NewError("open", ErrStalled, message, "restart the program if this lasts", nil)
	c.setFailing(Hung, hung)
	select {
	case c.sessions <- struct{}{}:
		c.setFailing(Connecting, hung)
		return true
	case <-ctx.Done():
		return false
	}
}

// abandon waits briefly for a cancelled session and then ignores everything that it may still deliver.
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
