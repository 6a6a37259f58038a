package capture

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// AtEnd is what a camera does when a file, a directory or another finite source ends.
type AtEnd uint8

// The end-of-file policies.
const (
	Stop AtEnd = iota // Run returns
	Loop              // starts again; sequence numbers go on
)

// Defaults of Camera's fields.
const (
	DefaultStallTimeout = 5 * time.Second
	DefaultOpenTimeout  = 10 * time.Second
	DefaultBackoffMin   = 500 * time.Millisecond
	DefaultBackoffMax   = 30 * time.Second
)

const (
	// grace is how long a source may take to react to being cancelled before it is left behind.
	grace = 500 * time.Millisecond
	// maxHanging bounds the captures that hang inside OpenCV at one time; the camera then waits for one of them to come back.
	maxHanging = 8
	// defaultRate paces a source that does not say how fast it is, in frames a second.
	defaultRate = 25
)

// Camera keeps one source running: it opens it, hands out its newest frame, paces files, notices stalls and reconnects. Set the exported
// fields, call Run in a goroutine of its own, Take in the consumer's, and Close at the end. The fields must not change after that.
type Camera struct {
	// Name is for messages and topics; URI says what to open (ParseURI).
	Name, URI string
	// Alloc gives the memory of the frames, see Pool; it must outlive Close. Buffers is how many there are, DefaultBuffers when 0.
	Alloc   Alloc
	Buffers int
	// StallTimeout is the time without a picture after which the source is given up, OpenTimeout the same for the first picture.
	StallTimeout, OpenTimeout time.Duration
	// BackoffMin and BackoffMax bound the pause before a reconnect; it doubles from one to the other while no picture comes, and a
	// random half is taken off so that many cameras do not come back at once.
	BackoffMin, BackoffMax time.Duration
	AtEnd                  AtEnd
	// Lossless lets the consumer set the pace: the source waits until each frame is taken. Else a finite source runs at its own rate and
	// a frame that is not taken in time is displaced by the next one.
	Lossless bool
	// FlatOut leaves out the pacing of a finite source, for benchmarks.
	FlatOut bool
	// Decoder is passed on to Open.
	Decoder Decoder
	// Notify gets a token when there is a new frame and when Run ends; see Mailbox.
	Notify chan<- struct{}
	// Logger hears about lost and recovered connections; nil for slog.Default().
	Logger *slog.Logger

	once     sync.Once
	pool     Pool
	freed    <-chan struct{}
	mailbox  Mailbox
	taken    chan struct{} // holds a token after Take, when Lossless
	hanging  chan struct{} // holds a token for every session that has not returned
	finished chan struct{} // closed when Run returns

	mu     sync.Mutex
	stop   context.CancelFunc // set while Run is running
	closed bool
	next   uint64 // sequence number
	stats  Stats
	lost   uint64  // captured without a free buffer
	period float64 // smoothed time between frames in nanoseconds
	last   int64   // when the newest frame came, CLOCK_MONOTONIC
}

func (c *Camera) prepare() {
	c.once.Do(func() {
		c.pool.Alloc, c.pool.Buffers = c.Alloc, c.Buffers
		c.freed = c.pool.Freed()
		c.mailbox.Notify = c.Notify
		c.taken = make(chan struct{}, 1)
		c.hanging = make(chan struct{}, maxHanging)
		if c.StallTimeout <= 0 {
			c.StallTimeout = DefaultStallTimeout
		}
		if c.OpenTimeout <= 0 {
			c.OpenTimeout = DefaultOpenTimeout
		}
		if c.BackoffMin <= 0 {
			c.BackoffMin = DefaultBackoffMin
		}
		if c.BackoffMax < c.BackoffMin {
			c.BackoffMax = max(c.BackoffMin, DefaultBackoffMax)
		}
		if c.Logger == nil {
			c.Logger = slog.Default()
		}
		c.stats = Stats{Name: c.Name, URI: Redact(c.URI), State: Opening}
	})
}

// Run captures until the context ends, Close is called or the source ends; then it returns nil. It returns an *Error when going on is
// pointless: a malformed URI, and a camera or file that cannot be opened the first time. A stream from the network is tried again for ever.
// It runs once.
func (c *Camera) Run(ctx context.Context) error {
	c.prepare()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.begin(cancel) {
		return nil
	}
	err := c.run(ctx)
	c.mu.Lock()
	c.stats.State = Ended
	if err != nil {
		c.stats.State, c.stats.Error = Failed, err.Error()
	}
	c.mu.Unlock()
	if c.Notify != nil {
		signal(c.Notify)
	}
	close(c.finished)
	return err
}

func (c *Camera) begin(cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.stop != nil {
		return false
	}
	c.stop, c.finished = cancel, make(chan struct{})
	return true
}

func (c *Camera) run(ctx context.Context) error {
	u, err := ParseURI(c.URI)
	if err != nil {
		return err
	}
	for failures := 0; ; {
		before := c.captured()
		err := c.connect(ctx, u)
		after := c.captured()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, io.EOF) && after > before:
			if c.AtEnd != Loop && !u.Loop {
				return nil
			}
			continue
		case errors.Is(err, io.EOF):
			err = u.fail("read", ErrFormat, "no picture in it", "", nil)
		}
		if after == 0 && (u.local() || errors.Is(err, ErrFormat)) {
			return err
		}
		if after > before {
			failures = 0
		}
		pause := c.backoff(failures)
		failures++
		c.Logger.Warn("camera lost", "camera", c.Name, "error", err, "retry", pause.Round(time.Millisecond))
		c.failed(err)
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// local reports whether a first failure to open will not go away by itself.
func (u URI) local() bool {
	switch u.Kind {
	case RTSP, HTTP:
		return false
	case Pipeline:
		return !remote.MatchString(u.Address)
	}
	return true
}

// backoff is the pause after that many failures in a row.
func (c *Camera) backoff(failures int) time.Duration {
	pause := c.BackoffMax
	if failures < 30 {
		pause = min(c.BackoffMin<<failures, c.BackoffMax)
	}
	return pause/2 + rand.N(pause/2+1)
}

// sleep waits and reports whether the context has lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// connect runs one session and watches over it. It returns in bounded time after the context has ended or the source has stalled, with
// or without the goroutine that is inside OpenCV.
func (c *Camera) connect(ctx context.Context, u URI) error {
	if !c.admit(ctx, u) {
		return ctx.Err()
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{camera: c, uri: u, ctx: inner, done: make(chan error, 1)}
	s.alive.Store(Monotonic())
	go func() {
		s.done <- s.run()
		<-c.hanging
	}()
	tick := time.NewTicker(min(max(c.StallTimeout/20, 5*time.Millisecond), 250*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case err := <-s.done:
			return err
		case <-ctx.Done():
			c.leave(s)
			return ctx.Err()
		case <-tick.C:
			limit, waiting := c.StallTimeout, "no picture for "
			if !s.running.Load() {
				limit, waiting = c.OpenTimeout, "no first picture for "
			}
			alive := s.alive.Load()
			if alive == 0 || Monotonic()-alive < int64(limit) {
				continue
			}
			err := u.fail("read", ErrStalled, waiting+limit.String(), "", nil)
			c.stuck(err)
			cancel()
			c.leave(s)
			return err
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
	c.stuck(u.fail("open", ErrStalled, strconv.Itoa(maxHanging)+" captures hang inside OpenCV", "restart the program if this lasts", nil))
	select {
	case c.hanging <- struct{}{}:
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

// Take hands over the newest frame, which the caller must release; false when there is no new one. One goroutine at a time may call it.
func (c *Camera) Take() (Frame, bool) {
	c.prepare()
	f, ok := c.mailbox.Take()
	if ok {
		signal(c.taken)
	}
	return f, ok
}

// Reallocate has the frames after the ones that are out come in new memory from Alloc, which may by then be another engine's.
func (c *Camera) Reallocate() {
	c.prepare()
	c.pool.Reallocate()
}

// Close ends Run and frees the buffers, those that are lent as soon as they are released. It waits for Run, not for a capture that hangs
// inside OpenCV, which holds no buffer. It is idempotent and may be called without Run.
func (c *Camera) Close() error {
	c.prepare()
	c.mu.Lock()
	c.closed = true
	stop, finished := c.stop, c.finished
	c.mu.Unlock()
	if stop != nil {
		stop()
		<-finished
	}
	c.mailbox.Displace()
	return c.pool.Close()
}
