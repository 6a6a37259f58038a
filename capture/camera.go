package capture

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/backoff"
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
)

const (
	// stableAfter is how long images must have come before trouble is over: the next loss is then news again, and the first try after it comes
	// soon.
	stableAfter = 30 * time.Second
	// maxOpenFactor is how many times OpenTimeout a source gets to give its first image, after it has not done so in less.
	maxOpenFactor = 8
	// defaultRate paces a source that does not say how fast it is, in frames a second.
	defaultRate = 25
)

// Camera keeps one source running: it opens it, hands out its newest frame, paces files, notices stalls and tries again for ever. Set the
// exported fields, call Run in a goroutine of its own, Take in the consumer's, and Close at the end. The fields must not change after that.
type Camera struct {
	// Name is for messages and topics; URI says what to open (ParseURI).
	Name, URI string
	// Open opens the source, each time anew: source.Open.
	Open Opener
	// Alloc gives the memory of the frames, see Pool; it must outlive Close. Buffers is how many there are, DefaultBuffers when 0.
	Alloc   Alloc
	Buffers int
	// MaxPixels is how many pixels an image may have, see Options. The frames take up to Buffers times 3 bytes of each.
	MaxPixels int
	// StallTimeout is the time without a good image after which the source is given up. OpenTimeout is the same for the first image; it
	// doubles up to maxOpenFactor times while the source gives none, for there are slow ones.
	StallTimeout, OpenTimeout time.Duration
	// Retry bounds the pause before another try, half a second to half a minute when it is not set; DeniedRetry that after user name or
	// password were missing or refused, 2 to 30 minutes: cameras lock accounts after a few wrong passwords.
	Retry, DeniedRetry backoff.Exponential
	AtEnd              AtEnd
	// Lossless lets the consumer set the pace: the source waits until each frame is taken. Else a finite source runs at its own rate and
	// a frame that is not taken in time is displaced by the next one.
	Lossless bool
	// Once makes the camera a job: the source is opened once, and Run returns the error of one that cannot be opened or read. Else whatever
	// goes wrong, at the first start or later, is tried again for ever.
	Once bool
	// Gate looks at every frame and says whether nothing moves in it. Run's goroutine calls it; nil for none. *motion.Gate is one.
	Gate interface {
		Still(image engine.Image, at int64) bool
	}
	// Thread is called by a thread that from then on does nothing but wait for the images of a live source, and ends with it: there it may
	// have a CPU or a scheduling of its own. Nil for none.
	SetupThread func()
	// Notify is called when there is a new frame and when Run ends; see Mailbox.
	Notify func()
	// Changed hears of each new state, and of images of a new size or format while running, with the snapshot after it. The calls come from
	// Run's goroutine, in order, at most a quarter of a second after what they tell of; the last one tells of Ended or Failed. It must return
	// soon and must not call Close. Nil for none.
	OnChange func(Stats)
	// Logger hears about lost and recovered connections, once per reason; nil for slog.Default().
	Logger *slog.Logger

	once     sync.Once
	pool     Pool
	released    <-chan struct{}
	mailbox  Mailbox
	taken    chan struct{} // holds a token after Take, when Lossless
	sessions  chan struct{} // holds a token for every session that has not returned
	finished chan struct{} // closed when Run returns

	log healthLog // Run's goroutine only
	reported    Stats   // what Changed has heard; Run's goroutine only

	mu     sync.Mutex
	stop   context.CancelFunc // set while Run is running
	closed bool
	next   uint64 // sequence number
	stats  Stats
	noBuffer   uint64    // captured without a free buffer
	period float64   // smoothed time between frames in nanoseconds
	lastCaptured   int64     // when the newest frame came, CLOCK_MONOTONIC
	lastTime  time.Time // the newest frame's own time
}

func (c *Camera) prepare() {
	c.once.Do(func() {
		c.pool.Alloc, c.pool.Buffers = c.Alloc, c.Buffers
		c.released = c.pool.Released()
		c.mailbox.Notify = c.Notify
		c.taken = make(chan struct{}, 1)
		c.sessions = make(chan struct{}, maxSessions)
		if c.StallTimeout <= 0 {
			c.StallTimeout = DefaultStallTimeout
		}
		if c.OpenTimeout <= 0 {
			c.OpenTimeout = DefaultOpenTimeout
		}
		c.Retry = c.Retry.OrElse(backoff.Exponential{Min: 500 * time.Millisecond, Max: 30 * time.Second})
		c.DeniedRetry = c.DeniedRetry.OrElse(backoff.Exponential{Min: 2 * time.Minute, Max: 30 * time.Minute})
		if c.Logger == nil {
			c.Logger = slog.Default()
		}
		c.log = healthLog{logger: c.Logger, camera: c.Name}
		c.stats = Stats{Name: c.Name, URI: Redact(c.URI), State: Connecting, Since: time.Now()}
	})
}

// Run captures until the context ends, Close is called or the source ends; then it returns nil. It returns an *Error when going on is
// pointless, which only a malformed URI is, unless the camera is a job (Once). It runs once.
func (c *Camera) Run(ctx context.Context) error {
	c.prepare()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.begin(cancel) {
		return nil
	}
	err := c.run(ctx)
	c.mu.Lock()
	if c.stats.Reason = ""; err == nil {
		c.setState(Ended)
	} else {
		c.setState(Failed)
		c.stats.Reason = reason(err)
	}
	c.mu.Unlock()
	c.publishState()
	if c.Notify != nil {
		c.Notify()
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
	var retries retries
	for again := false; ; {
		c.markOpening(again)
		s, err := c.runSession(ctx, u, retries.openTimeout(c.OpenTimeout))
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end was asked for, whatever came of the connection
		case errors.Is(err, io.EOF) && s.hasImage():
			if c.AtEnd != Loop && !u.Loop {
				return nil
			}
			again = false
			continue
		case errors.Is(err, io.EOF):
			err = u.NewError("read", ErrFormat, "no image in it", "", nil)
		}
		if c.Once || errors.Is(err, ErrURI) {
			return err
		}
		pause := retries.pause(c, s, err)
		c.markFailed(err, pause)
		if !sleep(ctx, pause) {
			return nil
		}
		again = true
	}
}

// retries counts what has gone wrong in a row.
type retries struct {
	failures, denials int
	slow              int // openings that took too long
}

// pause counts a session that has failed and says how long to wait.
func (t *retries) pause(c *Camera, s *session, err error) time.Duration {
	if s.stable() {
		*t = retries{}
	}
	switch {
	case errors.Is(err, ErrDenied):
		t.denials++
		return c.DeniedRetry.After(t.denials - 1)
	case errors.Is(err, ErrStalled) && !s.hasImage():
		t.slow++
	}
	t.failures++
	return c.Retry.After(t.failures - 1)
}

// openTimeout is how long the next source may take to give its first image.
func (t *retries) openTimeout(first time.Duration) time.Duration {
	return first * time.Duration(min(1<<min(t.slow, 8), maxOpenFactor))
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

// Take hands over the newest frame, which the caller must release; false when there is no new one. One goroutine at a time may call it.
func (c *Camera) Take() (Frame, bool) {
	c.prepare()
	f, ok := c.mailbox.Take()
	if ok {
		notify(c.taken)
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
	c.mailbox.Drop()
	return c.pool.Close()
}
