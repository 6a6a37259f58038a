package capture

import (
	"context"
	"strconv"
	"time"
)

const (
	// grace is how long a source may take to react to being cancelled before it is left behind.
	grace = 500 * time.Millisecond
	// maxHanging bounds the captures that hang inside OpenCV at one time; the camera then waits for one of them to come back.
	maxHanging = 8
)

// silence adds up how long a session has shown no sign of life. Only time in which this process could have noticed one counts: not the time
// in which it was stopped itself, nor that in which the source waits for somebody else.
type silence struct {
	life  uint64 // the session's at the last look
	look  int64  // CLOCK_MONOTONIC of that
	lasts time.Duration
}

func (q *silence) of(s *session, interval time.Duration) time.Duration {
	now := Monotonic()
	passed := min(time.Duration(now-q.look), 2*interval)
	q.look = now
	if life := s.life.Load(); life != q.life || s.excused.Load() {
		q.life, q.lasts = life, 0
		return 0
	}
	q.lasts += passed
	return q.lasts
}

// connect runs one session and watches over it. It returns in bounded time after the context has ended or the source has stalled, with
// or without the goroutine that is inside OpenCV.
func (c *Camera) connect(ctx context.Context, u URI, openTimeout time.Duration) (*session, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{camera: c, uri: u, ctx: inner, openTimeout: openTimeout, done: make(chan error, 1)}
	if !c.admit(ctx, u) {
		return s, ctx.Err()
	}
	s.excused.Store(u.Kind == Demo) // drawn by this process: if it is slow, so is everything here
	go func() {
		s.done <- s.run()
		<-c.hanging
	}()
	interval := min(max(c.StallTimeout/20, 5*time.Millisecond), 250*time.Millisecond)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	quiet := silence{look: Monotonic()}
	for {
		select {
		case err := <-s.done:
			c.announce()
			return s, err
		case <-ctx.Done():
			c.leave(s)
			return s, ctx.Err()
		case <-tick.C:
			c.announce()
			limit := c.StallTimeout
			if !s.running() {
				limit = openTimeout
			}
			if quiet.of(s, interval) < limit {
				continue
			}
			err := s.stalled(limit)
			c.trouble(Stalled, err)
			cancel()
			c.leave(s)
			return s, err
		}
	}
}

// admit waits until no more than maxHanging captures hang; false when the context has ended.
func (c *Camera) admit(ctx context.Context, u URI) bool {
	select {
	case c.hanging <- struct{}{}:
		return true
	default:
	}
	hung := u.NewError("open", ErrStalled, strconv.Itoa(maxHanging)+" captures hang inside OpenCV", "restart the program if this lasts", nil)
	c.trouble(Hung, hung)
	select {
	case c.hanging <- struct{}{}:
		c.trouble(Connecting, hung)
		return true
	case <-ctx.Done():
		return false
	}
}

// leave waits a moment for a cancelled session and then does without it: nothing that it may still deliver counts any more.
func (c *Camera) leave(s *session) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		c.mu.Lock()
		s.left = true
		c.stats.Abandoned++
		c.mu.Unlock()
	}
}
